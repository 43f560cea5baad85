// Package clientconfig reads and writes the MCP servers in the configuration files of other programs. For each program,
// it contains the locations of the files, and the form in which the files represent a server.
//
// ToNative converts a row, which is the entry of one server, to Drawbridge's format. The result has the members, units
// and variables of Drawbridge's own rows, and the line numbers of the original file. A member without an equivalent is
// left out, with a note that names it; no value is guessed.
//
// Rows are converted without accessing the environment or the disk. Variables are not expanded. Notes never contain a
// value, because it may be a secret.
package clientconfig
