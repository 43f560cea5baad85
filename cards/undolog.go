package cards

// An UndoLog keeps the earlier content of files, so that a person can take a run's changes back.
type UndoLog interface {
	// Before keeps the content of a file that a tool is about to change for a run, or that it does not exist. It returns
	// a function that records the content which the tool has written.
	Before(run, tool, path string) (done func(after []byte) error, err error)
}
