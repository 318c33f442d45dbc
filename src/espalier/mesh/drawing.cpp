#include "espalier/mesh/drawing.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

namespace espalier {
namespace {

using Lines = std::vector<std::string>;

// Columns a text takes: every UTF-8 character we draw is one wide.
int text_width(std::string_view text) {
  return static_cast<int>(std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

int text_width(const Lines& lines) {
  int width = 0;
  for (const std::string& line : lines) width = std::max(width, text_width(line));
  return width;
}

std::string hidden_text(int64_t count) { return fmt::format("… {} more", count); }

// Characters on a grid; boxes are drawn as directions, so that borders that meet become the right junction.
class Canvas {
 public:
  Canvas(int rows, int columns) : columns_(columns), cells_(static_cast<size_t>(rows) * static_cast<size_t>(columns)) {}

  void box(int top, int left, int bottom, int right) {
    for (int x = left; x < right; ++x)
      for (int y : {top, bottom}) at(y, x).lines |= kRight, at(y, x + 1).lines |= kLeft;
    for (int y = top; y < bottom; ++y)
      for (int x : {left, right}) at(y, x).lines |= kDown, at(y + 1, x).lines |= kUp;
  }

  void text(int y, int x, std::string_view text) {
    for (size_t i = 0; i < text.size(); ++x) {
      size_t end = i + 1;
      while (end < text.size() && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) ++end;
      at(y, x).glyph = text.substr(i, end - i);
      i = end;
    }
  }

  // Centred in the inside of a box.
  void text_in(int top, int left, int bottom, int right, const Lines& lines) {
    int y = top + 1 + std::max(0, bottom - top - 1 - static_cast<int>(lines.size())) / 2;
    for (const std::string& line : lines) text(y++, left + 1 + std::max(0, right - left - 1 - text_width(line)) / 2, line);
  }

  std::string str() const {
    static constexpr const char* kGlyphs[16] = {" ", "╴", "╶", "─", "╵", "┘", "└", "┴", "╷", "┐", "┌", "┬", "│", "┤", "├", "┼"};
    std::string all, line;
    for (size_t i = 0; i < cells_.size(); ++i) {
      line += cells_[i].glyph.empty() ? kGlyphs[cells_[i].lines] : cells_[i].glyph;
      if ((i + 1) % static_cast<size_t>(columns_) != 0) continue;
      all += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
      line.clear();
    }
    return all;
  }

 private:
  static constexpr uint8_t kLeft = 1, kRight = 2, kUp = 4, kDown = 8;
  struct Cell {
    uint8_t lines = 0;
    std::string glyph;
  };
  Cell& at(int y, int x) { return cells_[static_cast<size_t>(y) * static_cast<size_t>(columns_) + static_cast<size_t>(x)]; }

  int columns_;
  std::vector<Cell> cells_;
};

// Names on lines of at most `width`, at least one a line.
Lines wrap(const std::vector<std::string>& names, int width) {
  Lines lines;
  for (const std::string& name : names) {
    if (!lines.empty() && text_width(lines.back()) + 2 + text_width(name) <= width)
      lines.back() += ", " + name;
    else
      lines.push_back(name);
  }
  return lines;
}

// All names when they are few and fit into the lines, else the first ones, how many are left out, and the last.
Lines name_lines(const std::vector<std::string>& names, int width, size_t max_lines) {
  constexpr size_t kFew = 16;
  if (names.size() <= kFew)
    if (Lines lines = wrap(names, width); lines.size() <= max_lines) return lines;
  for (size_t keep = std::min<size_t>(5, names.size() - 1);; --keep) {
    std::vector<std::string> shown(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(keep) - 1);
    shown.push_back(hidden_text(static_cast<int64_t>(names.size() - keep)));
    shown.push_back(names.back());
    Lines lines = wrap(shown, width);
    if (lines.size() <= max_lines || keep == 2) return lines;
  }
}

// A row or column of boxes: one part of a dim, or a gap that stands for `hidden` parts. A dim that is not there has one part without ends.
struct Band {
  int64_t begin = 0, end = 0, index = 0, hidden = 0;
  int at = 0, pitch = 0;  // in characters; the pitch counts one border
};
using Bands = std::vector<Band>;

Bands parts_of(int64_t n, int64_t k) {
  Bands bands;
  for (int64_t i = 0; i < std::min(n, k); ++i) {
    Range range = part(n, k, i);
    bands.push_back({range.offset, range.offset + range.size, i});
  }
  return bands;
}

// The first `head` bands, a gap, and the last `tail`.
Bands shortened(const Bands& all, size_t head, size_t tail) {
  if (head + tail >= all.size()) return all;
  Bands bands(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(head));
  const Band &from = all[head], &to = all[all.size() - tail - 1];
  bands.push_back({from.begin, to.end, from.index, static_cast<int64_t>(all.size() - head - tail)});
  bands.insert(bands.end(), all.end() - static_cast<std::ptrdiff_t>(tail), all.end());
  return bands;
}

// Pitches in proportion to the sizes, the smallest part at least `least`. Of the next few pitches the one that rounds best is taken, so
// that 3 to 2 is drawn as 3 to 2. A gap has the pitch it needs.
enum class Scale { kProportional, kEqual };
void set_pitches(Bands* bands, int least, int gap, Scale scale) {
  int64_t small = INT64_MAX, large = 0;
  for (const Band& band : *bands)
    if (!band.hidden) small = std::min(small, band.end - band.begin), large = std::max(large, band.end - band.begin);
  auto exact = [&](int pitch, int64_t size) {
    return pitch * static_cast<double>(size) / static_cast<double>(std::max<int64_t>(1, small));
  };
  int best = least;
  double best_error = 1;
  if (scale == Scale::kProportional && large > small)
    for (int pitch = least; pitch <= least + 2; ++pitch) {
      double error = std::abs(std::round(exact(pitch, large)) - exact(pitch, large)) / pitch;
      if (error < best_error - 1e-9) best = pitch, best_error = error;
    }
  int at = 0;
  for (Band& band : *bands) {
    band.at = at;
    band.pitch = band.hidden ? gap : best;
    if (!band.hidden && scale == Scale::kProportional && large > small)
      band.pitch = static_cast<int>(std::lround(exact(best, band.end - band.begin)));
    at += band.pitch;
  }
}

int extent(const Bands& bands) { return bands.back().at + bands.back().pitch; }

enum class Ticks { kNone, kOffsets };

// One grid of boxes.
struct Grid {
  Bands rows, columns;
  Ticks row_ticks = Ticks::kNone, column_ticks = Ticks::kNone;
  std::vector<std::vector<Lines>> cells;  // of the bands shown; no lines in a gap
};

using NamesAt = std::function<std::vector<std::string>(int64_t row, int64_t column)>;

void fill_cells(Grid* grid, const NamesAt& names, int width) {
  constexpr size_t kMaxLines = 4;
  grid->cells.assign(grid->rows.size(), std::vector<Lines>(grid->columns.size()));
  for (size_t r = 0; r < grid->rows.size(); ++r)
    for (size_t c = 0; c < grid->columns.size(); ++c)
      if (!grid->rows[r].hidden && !grid->columns[c].hidden)
        grid->cells[r][c] = name_lines(names(grid->rows[r].index, grid->columns[c].index), width, kMaxLines);
}

int tick_width(const Bands& bands) { return text_width(std::to_string(bands.back().end)); }

// The least pitch at which names, offsets and the texts of gaps fit.
int least_column_pitch(const Grid& grid, int padding) {
  int inner = 1, needed = 0;
  for (const std::vector<Lines>& row : grid.cells)
    for (const Lines& lines : row) inner = std::max(inner, text_width(lines));
  for (const Band& row : grid.rows)
    if (row.hidden) needed = std::max(needed, text_width(hidden_text(row.hidden)) + 1 + 2 * padding);
  int pitch =
      std::max(inner + 1 + 2 * padding, (needed + static_cast<int>(grid.columns.size()) - 1) / static_cast<int>(grid.columns.size()));
  return grid.column_ticks == Ticks::kOffsets ? std::max(pitch, tick_width(grid.columns) + 1) : pitch;
}

// Tries these columns in `room` characters: first to scale, then with less air, then not to scale.
bool fit_columns(Grid* grid, const NamesAt& names, int room) {
  int gap_width = 0;
  for (const Band& column : grid->columns)
    if (column.hidden) gap_width = text_width(hidden_text(column.hidden));
  for (Scale scale : {Scale::kProportional, Scale::kEqual})
    for (int padding : {1, 0}) {
      int width = (room - gap_width) / static_cast<int>(grid->columns.size()) - 1 - 2 * padding;
      fill_cells(grid, names, std::max(1, width));
      set_pitches(&grid->columns, least_column_pitch(*grid, padding), gap_width + 3, scale);
      if (extent(grid->columns) <= room) return true;
    }
  return false;
}

// The most columns that fit, the last one always among them unless there is room for one only.
void choose_columns(Grid* grid, const NamesAt& names, int room) {
  const Bands all = grid->columns;
  size_t most = std::min(all.size(), static_cast<size_t>(std::max(1, room / 3)));
  if (most == all.size() && fit_columns(grid, names, room)) return;
  for (size_t head = most; head > 0; --head)
    for (size_t tail : {size_t{1}, size_t{0}}) {
      if (tail == 0 && head > 1) continue;
      grid->columns = shortened(all, head, tail);
      if (fit_columns(grid, names, room)) return;
    }
}

void set_row_pitches(Grid* grid) {
  size_t lines = 1;
  for (const std::vector<Lines>& row : grid->cells)
    for (const Lines& cell : row) lines = std::max(lines, cell.size());
  constexpr int kTall = 24;  // lines of a small terminal; a taller grid gives up the scale
  for (Scale scale : {Scale::kProportional, Scale::kEqual}) {
    set_pitches(&grid->rows, static_cast<int>(lines) + 1, 2, scale);
    if (extent(grid->rows) <= kTall) return;
  }
}

void draw_ticks(const Grid& grid, Canvas* canvas, int top, int left) {
  auto tick = [](const Bands& bands, size_t i) { return i < bands.size() ? bands[i].begin : bands.back().end; };
  auto at = [](const Bands& bands, size_t i) { return i < bands.size() ? bands[i].at : extent(bands); };
  if (grid.column_ticks == Ticks::kOffsets)
    for (size_t c = 0; c <= grid.columns.size(); ++c) canvas->text(0, left + at(grid.columns, c), std::to_string(tick(grid.columns, c)));
  if (grid.row_ticks == Ticks::kOffsets)
    for (size_t r = 0; r <= grid.rows.size(); ++r)
      canvas->text(top + at(grid.rows, r), 0, fmt::format("{:>{}}", tick(grid.rows, r), left - 1));
}

std::string draw_grid(Grid grid, const NamesAt& names, int width) {
  int left = grid.row_ticks == Ticks::kOffsets ? tick_width(grid.rows) + 1 : 0;
  int top = grid.column_ticks == Ticks::kOffsets ? 1 : 0;
  int overhang = grid.column_ticks == Ticks::kOffsets ? tick_width(grid.columns) : 1;
  choose_columns(&grid, names, width - left - overhang);
  set_row_pitches(&grid);
  Canvas canvas(top + extent(grid.rows) + 1, left + extent(grid.columns) + overhang);
  for (size_t r = 0; r < grid.rows.size(); ++r) {
    int y = top + grid.rows[r].at, bottom = y + grid.rows[r].pitch;
    if (grid.rows[r].hidden) {
      canvas.box(y, left, bottom, left + extent(grid.columns));
      canvas.text_in(y, left, bottom, left + extent(grid.columns), {hidden_text(grid.rows[r].hidden)});
      continue;
    }
    for (size_t c = 0; c < grid.columns.size(); ++c) {
      int x = left + grid.columns[c].at, right = x + grid.columns[c].pitch;
      canvas.box(y, x, bottom, right);
      canvas.text_in(y, x, bottom, right, grid.columns[c].hidden ? Lines{hidden_text(grid.columns[c].hidden)} : grid.cells[r][c]);
    }
  }
  draw_ticks(grid, &canvas, top, left);
  return canvas.str();
}

// Which devices hold which part. Parts are numbered row-major over the dims; there are never more of them than devices.
struct Owners {
  std::vector<int64_t> counts;  // parts of each dim
  std::vector<std::vector<std::string>> names;
  std::vector<std::string> empty;  // devices that hold nothing
};

Owners find_owners(const Sharding& sharding, const Dims& shape, const DeviceMesh& mesh) {
  Owners owners;
  int64_t total = 1;
  for (int d = 0; d < shape.rank(); ++d) {
    owners.counts.push_back(part_count(sharding.dims[static_cast<size_t>(d)], mesh));
    total *= owners.counts.back();
  }
  owners.names.resize(static_cast<size_t>(total));
  for (int64_t device = 0; device < mesh.size(); ++device) {
    int64_t number = 0;
    bool empty = false;
    for (int d = 0; d < shape.rank(); ++d) {
      int64_t index = part_index(sharding.dims[static_cast<size_t>(d)], mesh, device);
      number = number * owners.counts[static_cast<size_t>(d)] + index;
      empty |= index >= shape[d];  // of n over k parts, the first n hold something
    }
    const std::string& name = mesh.devices()[static_cast<size_t>(device)];
    (empty ? owners.empty : owners.names[static_cast<size_t>(number)]).push_back(name);
  }
  return owners;
}

// The slice that a choice of parts of the leading dims is, as "[0:2, :, :]".
std::string slice_title(const std::vector<int64_t>& index, const Owners& owners, const Dims& shape) {
  std::vector<std::string> dims;
  for (size_t d = 0; d < index.size(); ++d) {
    Range range = part(shape[static_cast<int>(d)], owners.counts[d], index[d]);
    dims.push_back(owners.counts[d] == 1 ? ":" : fmt::format("{}:{}", range.offset, range.offset + range.size));
  }
  return fmt::format("[{}, :, :]", fmt::join(dims, ", "));
}

// The grid of the last two dims under a choice of parts of the leading ones.
std::string draw_slice(const std::vector<int64_t>& leading, const Owners& owners, const Dims& shape, int width, int max_rows) {
  int rank = shape.rank();
  int64_t number = 0;
  for (size_t d = 0; d < leading.size(); ++d) number = number * owners.counts[d] + leading[d];
  auto bands = [&](int d) { return d >= 0 ? parts_of(shape[d], owners.counts[static_cast<size_t>(d)]) : Bands(1); };
  Grid grid{.rows = bands(rank - 2), .columns = bands(rank - 1), .cells = {}};
  if (rank >= 2) grid.row_ticks = Ticks::kOffsets;
  if (rank >= 1) grid.column_ticks = Ticks::kOffsets;
  if (grid.rows.size() > static_cast<size_t>(max_rows)) grid.rows = shortened(grid.rows, static_cast<size_t>(std::max(1, max_rows - 2)), 1);
  auto names = [&](int64_t row, int64_t column) {
    int64_t part = number;
    if (rank >= 2) part = part * owners.counts[static_cast<size_t>(rank - 2)] + row;
    if (rank >= 1) part = part * owners.counts[static_cast<size_t>(rank - 1)] + column;
    return owners.names[static_cast<size_t>(part)];
  };
  return draw_grid(std::move(grid), names, width);
}

std::string draw_slices(const Owners& owners, const Dims& shape, int width, const DrawOptions& options) {
  size_t leading = static_cast<size_t>(std::max(0, shape.rank() - 2));
  std::vector<int64_t> index(leading, 0);
  int64_t total = 1;
  for (size_t d = 0; d < leading; ++d) total *= std::min(shape[static_cast<int>(d)], owners.counts[d]);
  int64_t shown = std::min<int64_t>(total, std::max(1, options.max_slices));
  std::string text;
  for (int64_t slice = 0; slice < shown; ++slice) {
    if (leading > 0) text += slice_title(index, owners, shape) + "\n";
    text += draw_slice(index, owners, shape, width, options.max_rows);
    for (size_t d = leading; d-- > 0;) {
      if (++index[d] < std::min(shape[static_cast<int>(d)], owners.counts[d])) break;
      index[d] = 0;
    }
  }
  if (shown < total) text += fmt::format("{} slice{}\n", hidden_text(total - shown), total - shown == 1 ? "" : "s");
  return text;
}

std::string spelled(const TensorLayout& layout, const DeviceMesh& mesh) {
  return fmt::format("NamedSharding(mesh={}, spec={})", to_string(mesh), to_string(layout));
}

}  // namespace

std::string named_sharding(const TensorLayout& layout, const DeviceMesh& mesh) { return spelled(layout, mesh); }

std::string named_sharding(const Sharding& sharding, const DeviceMesh& mesh) { return spelled(unbind(sharding, mesh), mesh); }

std::string draw_sharding(const Sharding& sharding, const Dims& shape, const DeviceMesh& mesh, const DrawOptions& options) {
  int width = std::max(40, options.width);
  Owners owners = find_owners(sharding, shape, mesh);
  std::string text;
  if (std::find(shape.begin(), shape.end(), 0) == shape.end()) text = draw_slices(owners, shape, width, options);
  if (!owners.empty.empty()) {
    const std::string label = "empty: ";
    Lines lines = name_lines(owners.empty, width - text_width(label) - 1, 2);
    text += fmt::format("{}{}\n", label, fmt::join(lines, ",\n" + std::string(label.size(), ' ')));
  }
  if (sharding.pending != 0) {
    std::vector<std::string> axes;
    for (int a = 0; a < mesh.axis_count(); ++a)
      if (sharding.pending >> a & 1) axes.push_back("'" + mesh.axis_names()[static_cast<size_t>(a)] + "'");
    text += fmt::format("pending: {} over {}\n", to_string(sharding.reduction), fmt::join(axes, ", "));
  }
  return text;
}

}  // namespace espalier
