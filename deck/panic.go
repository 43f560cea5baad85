package deck

import (
	"fmt"
	"runtime"
	"strings"
)

// panicMessage returns a text for the log about the value of a panic. For a runtime error it returns the error's text.
// For any other value it returns only the type, because the value may contain arguments of a call.
func panicMessage(p any) string {
	if err, ok := p.(runtime.Error); ok {
		return err.Error()
	}
	return fmt.Sprintf("a %T", p)
}

// panicLocation returns the function and line that panicked, such as "main.f:12". It must be called in the deferred
// function that recovers from the panic.
func panicLocation() string {
	var pcs [16]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(0, pcs[:])])
	for inPanic := false; ; {
		frame, more := frames.Next()
		inRuntime := strings.HasPrefix(frame.Function, "runtime.")
		switch {
		case inPanic && !inRuntime:
			return fmt.Sprintf("%s:%d", frame.Function, frame.Line)
		case frame.Function == "runtime.gopanic":
			inPanic = true
		}
		if !more {
			return "unknown"
		}
	}
}
