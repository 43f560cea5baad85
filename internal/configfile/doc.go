// Package configfile parses configuration files in JSON, TOML and YAML into a common tree, and edits the files as text.
//
// JSON may have comments and trailing commas. A file of any format becomes a tree of Nodes. A Node contains a value as
// written and its line; members and items are in the file's order. The package does not interpret the values. A file
// may come from a stranger's project, so memory and time are limited to little more than the file's size requires.
// Values must not nest deeper than MaxDepth. Error texts contain no value, because the value may be a secret.
//
// An edit changes one value and leaves every other byte unchanged: comments, order, indentation, line endings and the
// byte order mark. Each edit is checked by parsing its result. If the new value is missing or another value changed,
// the edit returns an error and no result. A file that cannot be parsed is never edited. RewriteFile replaces a file
// atomically; the other edits work in memory.
package configfile
