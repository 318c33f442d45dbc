// The text form of graphs: whatever is read prints to a text that reads and prints the same.
#include "espalier/ir/text.h"
#include "fuzz.h"

using namespace espalier;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text = fuzz::text_of(data, size);
  // A mesh lists its devices, up to 2^16 of some 200 bytes; "in %0 f32[]" is a value of as many.
  fuzz::check(size, {16 << 20, 256}, [&] {
    const std::string printed = print(parse_graph(text));
    std::string again;
    try {
      again = print(parse_graph(printed));
    } catch (const Error& error) {
      fuzz::require(false, printed + "is refused: " + error.what());
    }
    fuzz::require(again == printed, printed + "reads back as\n" + again);
  });
  return 0;
}
