// Package configfile reads files of any format as one tree with lines, and edits them as text.
//
// JSON with comments, TOML and YAML become the same nodes: the values as written, in the file's order, with their
// lines. A file may come from a stranger's project. A parser therefore takes little memory and time beyond the file's
// size, nests no deeper than MaxDepth, and its errors contain no value, since it may be a secret. The package does not
// interpret values.
//
// An edit changes one value and leaves every other byte in place: comments, order, indentation, line ends, the byte
// order mark. Each edit is checked by parsing the result: unless the new value is there and all others are unchanged,
// there is an error and no result. A file that does not parse is never edited. RewriteFile replaces a file atomically;
// the other edits work in memory.
package configfile
