// report: one page of a ladder, measured now or read from a record.
#include <fmt/format.h>

#include <filesystem>
#include <iostream>

#include "ir/diagnostic.h"
#include "runtime/files.h"
#include "tools/measure.h"
#include "tools/page.h"

namespace tilewright {

namespace {

// Puts a text where the template names it.
void put_in(std::string& page, std::string_view name, std::string_view text) {
  const std::size_t at = page.find(name);
  if (at == std::string::npos) internal_error(fmt::format("the page has no `{}`", name));
  page.replace(at, name.size(), text);
}

// JSON inside a page: no text in it may end the element that holds it, or open a comment.
std::string inside_page(const std::string& json) {
  std::string out;
  out.reserve(json.size() + json.size() / 50);
  for (const char letter : json) {
    if (letter == '<') out += "\\u003c";
    else out += letter;
  }
  return out;
}

std::string escaped_title(const std::string& text) {
  std::string out;
  for (const char letter : text) out += letter == '<' ? std::string("&lt;") : letter == '&' ? std::string("&amp;") : std::string(1, letter);
  return out;
}

}  // namespace

std::string page_of(const Ladder& ladder, const Record* record) {
  std::string data = "{\"record\": null, \"ladder\": " + json_of(ladder) + "}";
  if (record != nullptr) {
    Record told = *record;
    told.ladders.clear();
    told.files.clear();
    data = "{\"record\": " + json_of(told) + ", \"ladder\": " + json_of(ladder) + "}";
  }
  std::string page(report_asset("page.html"));
  put_in(page, "@TITLE@", escaped_title(fmt::format("{}{}", ladder.fn, ladder.schedule.empty() ? "" : " \"" + ladder.schedule + '"')));
  put_in(page, "@STYLE@", report_asset("page.css"));
  put_in(page, "@SCRIPT@", report_asset("page.js"));
  put_in(page, "@DATA@", inside_page(data));
  return page;
}

ExitCode report_verb(const Options& options) {
  if (options.folder.empty()) throw UserError({}, "no page to write is named", "write -o report.html");
  const std::string extension = std::filesystem::path(options.file).extension().string();
  const bool is_record = extension == ".json" || std::filesystem::is_directory(options.file);
  std::string page;
  if (!is_record) {
    require_writable(options.folder);  // before the work
    page = page_of(ladder_of(options, true), nullptr);
  } else {
    const std::string file = extension == ".json" ? options.file : (std::filesystem::path(options.file) / "record.json").string();
    const std::string text = read_whole_file(file);
    if (text.find("\"tilewright_record\"") != std::string::npos) {
      const Record record = record_of_json(text, file);
      if (record.ladders.empty()) throw UserError({}, fmt::format("`{}` holds no ladder", file));
      page = page_of(record.ladders.front(), &record);
    } else {
      page = page_of(ladder_of_json(text, file), nullptr);
    }
  }
  replace_file(options.folder, {}, page);
  std::cout << options.folder << "\n";
  return ExitCode::Success;
}

}  // namespace tilewright
