package cards

import "github.com/drawbridge-mcp/drawbridge"

// An UndoLog stores the earlier content of files, so that a person can undo the changes of a run.
type UndoLog interface {
	// Before stores the content of a file that a tool is about to change, or stores that the file does not exist. After
	// the change, the tool calls done with the new content. If Before returns an error, the tool must not change the
	// file.
	Before(c FileChange) (done func(after []byte) error, err error)
}

// A FileChange is a change that a tool is about to make.
type FileChange struct {
	// Run is the run that makes the change, see [deck.RunOf]. Tool is the name of the tool. Path is the absolute path
	// of the file.
	Run, Tool, Path string
	Caller          drawbridge.Caller
	// Call is the ID of the audit record of the call that makes the change; empty without an audit.
	Call string
}
