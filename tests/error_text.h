#pragma once
// The text of the espalier::Error that a call throws; "no error" when it throws none.
#include <string>

#include "espalier/base/error.h"

template <class Call>
std::string error_text(Call&& call) {
  try {
    call();
  } catch (const espalier::Error& error) {
    return error.what();
  }
  return "no error";
}
