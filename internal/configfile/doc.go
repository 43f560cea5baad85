// Package configfile reads files of any format as one tree with lines, and edits them as text.
//
// JSON with comments, TOML and YAML become the same nodes: what was written, in the file's order, and on which line. A
// file may come from a stranger's project: however it is made, a parser takes little memory and time beyond its size,
// nests no deeper than MaxDepth, and its errors repeat no value, since that may be a secret. What the values mean is
// nobody's business here.
//
// An edit changes one value and leaves every other byte where it was: comments, order, indentation, line ends, the
// byte order mark. Each one is checked by reading the result again: unless the new value is there and all others are
// what they were, there is an error and no result. What does not parse is never edited. Nothing is read from disk or
// written to it.
package configfile
