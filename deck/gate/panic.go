package gate

import (
	"fmt"
	"log/slog"
	"runtime"
	"strings"

	"github.com/drawbridge-mcp/drawbridge"
)

// Panicked logs that somebody's code panicked about a card. It is called by the function that recovers.
func Panicked(log *slog.Logger, what string, card drawbridge.CardName, p any) {
	log.Error(what, "card", card, "panic", panicOf(p), "at", panicAt())
}

// panicOf is what of a panic may be logged: what the runtime says, else only its type. Others put into it whatever they had in
// their hands, and that may be the arguments of a call.
func panicOf(p any) string {
	if err, ok := p.(runtime.Error); ok {
		return err.Error()
	}
	return fmt.Sprintf("a %T", p)
}

// panicAt is the place of the panic that the function which defers its caller recovers from.
func panicAt() string {
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
