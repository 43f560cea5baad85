// Package doc reads files of any format as one tree with lines.
//
// JSON with comments, TOML and YAML become the same nodes: what was written, in the file's order, and on which line. A
// file may come from a stranger's project: however it is made, a parser takes little memory and time beyond its size,
// nests no deeper than MaxDepth, and its errors repeat no value, since that may be a secret. What the values mean is
// nobody's business here.
package doc
