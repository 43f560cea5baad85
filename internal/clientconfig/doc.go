// Package clientconfig knows which programs keep MCP servers in files of theirs, where, and how they write a server
// down.
//
// It says the same in our own words: what Carry gives has the members, units and variables of a native row, with the
// lines of the file it came from. What cannot be said is left out, and a note names it; nothing is guessed. Nothing is
// read from a disk or an environment here, no variable is put in, and no note repeats a value, since that may be a
// secret.
package clientconfig
