#pragma once
// An error for users is part of the interface: its kind and its words are tested.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "espalier/base/error.h"

namespace espalier {

// The text of the Error that a call throws; "no error" when it throws none.
template <class Call>
std::string error_text(Call&& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

// For messages of which a part is not the test's: that the call throws an Error of this kind whose text has these words.
template <class Call>
void expect_error(ErrorKind kind, const std::vector<std::string>& words, Call&& call) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), kind) << error.what();
    for (const std::string& word : words)
      EXPECT_NE(std::string(error.what()).find(word), std::string::npos) << error.what() << "\nlacks: " << word;
    return;
  }
  ADD_FAILURE() << "no error" << (words.empty() ? "" : ": " + words[0]);
}

}  // namespace espalier
