package terminal

import "golang.org/x/sys/windows"

// forget drops what was typed and not read yet.
func forget(fd int) error { return windows.FlushConsoleInputBuffer(windows.Handle(fd)) }
