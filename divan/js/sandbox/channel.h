// Frames between this process and the server (../protocol.h), on standard input and output.
#pragma once

#include <string>

namespace divan::js::sandbox {

/// Begins an empty frame: four bytes for its length. Frees a large buffer.
void begin_frame(std::string& frame);
/// Fills in the length of a frame, and writes it. Exits if the server has closed the connection.
void write_frame(std::string& frame);
/// Reads the content of a frame. Exits if the server has closed the connection, or the frame is too long.
void read_frame(std::string& content);

}  // namespace divan::js::sandbox
