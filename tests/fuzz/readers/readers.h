// What reads texts and files of users, each as one call on some bytes: for libFuzzer, and for the test that damages examples.
#pragma once

#include <string>

namespace tilewright {
class UserError;
}

namespace tilewright::fuzz {

// Each takes any bytes, and gives the message of the refusal, or nothing where they are read. A refusal that says nothing, or
// a text that does not come back as what was read, is an internal error; so is whatever else leaves them.
std::string read_as_program(const std::string& bytes);
std::string read_as_ir(const std::string& bytes);
std::string read_as_npy(const std::string& bytes);
// A first line of a schedule, tried on the plan of a matrix product.
std::string read_as_schedule_line(const std::string& bytes);

// What a refusal says, which is to be something.
std::string message_of(const UserError& error, const std::string& bytes);

}  // namespace tilewright::fuzz
