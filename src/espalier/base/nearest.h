#pragma once
// The nearest correct spelling, for error messages.
#include <string>
#include <string_view>
#include <vector>

namespace espalier {

// Edit distance (Levenshtein) between two words.
int edit_distance(std::string_view a, std::string_view b);

// The candidate with the least edit distance, or "" when none is within a third of the word's length (at least 2, and less than all of
// it), and for words of more than 256 characters. Before that, the one path of which the word is the end: 'sequential/dense/kernel' for
// 'dense/kernel'.
std::string nearest(std::string_view word, const std::vector<std::string>& candidates);

// "did you mean 'X'?" or, without a near candidate, the candidates themselves: "known: a, b, c" (at most 12 shown).
std::string suggest(std::string_view word, const std::vector<std::string>& candidates);

}  // namespace espalier
