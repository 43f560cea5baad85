// Package clientconfig knows which programs keep MCP servers in files of their own, where those files are, and how they
// represent a server.
//
// It converts each row to the native format: the result of ToNative has the members, units and variables of a native
// row, with the lines of the original file. Members without an equivalent are left out with a note that names them;
// nothing is guessed.
//
// Only backups touch the disk. Rows are converted without reading the environment, variables are not expanded, and
// notes never contain a value, since it may be a secret.
package clientconfig
