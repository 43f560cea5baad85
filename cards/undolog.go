package cards

import "github.com/drawbridge-mcp/drawbridge"

// An UndoLog keeps the earlier content of files, so that a person can take a run's changes back.
type UndoLog interface {
	// Before keeps the content of a file that a tool is about to change, or that it does not exist. It returns a
	// function that records the content which the tool has written.
	Before(c FileChange) (done func(after []byte) error, err error)
}

// A FileChange is a change that a tool is about to make.
type FileChange struct {
	// Run is the run that makes it, see [deck.RunOf]. Tool is the tool, Path the absolute path of the file.
	Run, Tool, Path string
	Caller          drawbridge.Caller
}
