// Records of experiments: what was asked and expected, on what, and what came out; a folder each.
//
//   record.json  everything, for programs; versioned, written whole or not at all
//   record.md    for people: question, prediction, set-up, table; what a person wrote in it stays
//   ladder.svg   the bars, for a web page
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "runtime/library/ladder/ladder.h"

namespace tilewright {

constexpr int record_version = 3;

struct Record {
  std::string when;        // "2026-12-01T01:40:00Z"
  std::string question;
  std::string prediction;
  std::vector<std::string> command;  // its words, without --record
  std::string seed;
  std::string program_version;       // of Tilewright
  std::string nvrtc;                 // empty: not found
  int power_limit_watts = 0;         // 0: not known
  int other_processes = -1;          // on the GPU; -1: not known
  std::vector<std::pair<std::string, std::string>> files;  // hand kernels and peers: path as the command or program names it, text
  std::vector<Ladder> ladders;       // one, or of `bench` one a bench
};

std::string json_of(const Record& record);
// Throws UserError that names `where`, as ladder_of_json.
Record record_of_json(const std::string& text, const std::string& where);

// Throws UserError where the folder cannot be made or written, or holds a record already. To be asked before the work.
void prepare_record_folder(const std::string& folder);
// Writes the three files. A record.md that is there keeps every line; the new text comes behind.
void write_record(const std::string& folder, const Record& record);
Record read_record(const std::string& folder);

// The words of its command as a shell reads them.
std::string command_words(const Record& record);
std::string markdown_of(const Record& record);
std::string svg_of(const Ladder& ladder);

// A page of documentation from records, for a file in `page_folder`: tables, what each rung bought, and what a person wrote under
// surprise, lesson and still open. Throws UserError for what is no record.
std::string documentation_page(const std::vector<std::string>& folders, const std::string& page_folder);

// Records in the folder and in the folders below it, newest first. What cannot be read has its reason instead.
struct JournalEntry {
  std::string folder;
  Record record;
  std::string fault;
};
std::vector<JournalEntry> journal_of(const std::string& folder);
std::string journal_markdown(const std::vector<JournalEntry>& entries);
std::string journal_html(const std::vector<JournalEntry>& entries);

// What is different, in set-up, rows, times and code.
std::string record_difference(const Record& a, const std::string& a_name, const Record& b, const std::string& b_name);

}  // namespace tilewright
