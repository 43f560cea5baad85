package safetext

import (
	"fmt"
	"io"
)

// Shown is text that Fprintf, Fprintln and Sprintf print unchanged: Drawbridge's own colour codes, or text that Text or
// Exact has already made safe.
type Shown string

// Fprintf is like fmt.Fprintf, but prints each argument on one line, made safe by Line. The format is printed
// unchanged, and so are arguments of type Shown.
func Fprintf(w io.Writer, format string, args ...any) (int, error) {
	return fmt.Fprintf(w, format, wrapped(args)...)
}

// Fprintln is like fmt.Fprintln, but prints each argument on one line, made safe by Line.
func Fprintln(w io.Writer, args ...any) (int, error) { return fmt.Fprintln(w, wrapped(args)...) }

// Sprintf is like fmt.Sprintf, but formats each argument on one line, made safe by Line.
func Sprintf(format string, args ...any) string { return fmt.Sprintf(format, wrapped(args)...) }

func wrapped(args []any) []any {
	all := make([]any, len(args))
	for i, arg := range args {
		switch arg.(type) {
		case Shown, bool, int, int32, int64, uint, uint16, uint32, uint64, float64:
			all[i] = arg
		default:
			all[i] = argument{arg}
		}
	}
	return all
}

// An argument is a value whose formatted text is printed on one line for every verb.
type argument struct{ value any }

// Format formats the value, makes the text safe with Line, and prints it. Padding to the width is added afterwards.
func (a argument) Format(f fmt.State, verb rune) {
	switch _, wide := f.Width(); {
	case verb == 's' || verb == 'v' && !f.Flag('+') && !f.Flag('#'):
		fmt.Fprintf(f, fmt.FormatString(f, verb), Line(fmt.Sprintf("%"+string(verb), a.value)))
	case wide:
		fmt.Fprintf(f, fmt.FormatString(f, verb), a.value) // a number: texts have a width only with %s and %v
	default:
		io.WriteString(f, Line(fmt.Sprintf(fmt.FormatString(f, verb), a.value)))
	}
}
