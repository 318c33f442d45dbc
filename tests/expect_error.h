#pragma once
// An error for users is part of the interface: its kind and its words are tested.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "espalier/base/error.h"

namespace espalier {

template <class Action>
void expect_error(ErrorKind kind, const std::vector<std::string>& words, Action action) {
  try {
    action();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), kind) << error.what();
    for (const std::string& word : words)
      EXPECT_NE(std::string(error.what()).find(word), std::string::npos) << error.what() << "\nlacks: " << word;
    return;
  }
  ADD_FAILURE() << "no error" << (words.empty() ? "" : ": " + words[0]);
}

}  // namespace espalier
