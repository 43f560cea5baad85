package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/admin"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
	"github.com/spf13/cobra"
)

// exactArgs checks that a command has n arguments that are not empty. The text in what describes the arguments in the
// error, which is an admin.UserError.
func exactArgs(n int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == n && !slices.Contains(args, "") {
			return nil
		}
		return admin.UserError(fmt.Sprintf("%s takes %s (see %q)", cmd.CommandPath(), what,
			cmd.CommandPath()+" --help"))
	}
}

// An ExitError is an error that ends a command with that exit code. It has no text, because the text was printed before
// or is in the error that wraps the ExitError.
type ExitError int

// Error returns an empty text.
func (ExitError) Error() string { return "" }

// interruptedError returns an error with the exit code 130, as shells do, if Ctrl-C ended the command. Otherwise it
// returns err. ctx is the context of the command, which Ctrl-C cancels.
func interruptedError(ctx context.Context, err error) error {
	const by ExitError = 130
	if ctx.Err() == nil || !errors.Is(err, context.Canceled) {
		return err
	}
	f, ok := errors.AsType[*drawbridge.Fault](err)
	switch {
	case !ok:
		return fmt.Errorf("interrupted%w", by)
	case f.Ambiguous:
		return fmt.Errorf("interrupted: %s (it may have had its effect)%w", f.Step, by)
	}
	return fmt.Errorf("interrupted: %s%w", f.Step, by)
}

// PrintJSON prints v as one indented JSON document, with control and invisible characters escaped (safetext.JSON).
func PrintJSON(w io.Writer, v any) error { return encodeJSON(w, v, "  ") }

// printJSONLine prints v as PrintJSON does, on one line.
func printJSONLine(w io.Writer, v any) error { return encodeJSON(w, v, "") }

func encodeJSON(w io.Writer, v any, indent string) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", indent)
	if err := enc.Encode(v); err != nil {
		return err
	}
	_, err := w.Write(safetext.JSON(b.Bytes()))
	return err
}

// A listPrinter prints a list of items as JSON or as a table. For an empty list it prints a text instead of a table.
type listPrinter[T any] struct {
	// Header has the names of the columns, separated by tabs. EmptyText is printed for an empty list. Columns returns
	// the cells of an item, separated by tabs.
	Header, EmptyText string
	Columns           func(T) string
}

// print prints all items to out. If there are none and asJSON is not set, it prints EmptyText to whom.
func (l listPrinter[T]) print(out, whom io.Writer, all []T, asJSON bool) error {
	switch {
	case asJSON:
		return PrintJSON(out, append([]T{}, all...))
	case len(all) == 0:
		safetext.Fprintln(whom, l.EmptyText)
		return nil
	}
	table := NewTable(out)
	fmt.Fprintln(table, l.Header)
	for _, one := range all {
		fmt.Fprintln(table, l.Columns(one))
	}
	return table.Flush()
}

// formatCount returns a count with a regular plural: "1 record", "2 records".
func formatCount[N int | uint64](n N, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprintf("%d %s", n, what)
}

// formatLocalTime returns a moment in local time, to the second.
func formatLocalTime(t time.Time) string { return t.Local().Format(time.DateTime) }

// formatStartTime returns the start time of a server, given in milliseconds; 0 means that it never started.
func formatStartTime(ms int64) string {
	if ms == 0 {
		return "-"
	}
	return (time.Duration(ms) * time.Millisecond).String()
}

// formatAgo returns how long ago t was, such as "now" or "5m ago". It returns a date if t is two days ago or longer,
// and "never" for the zero time.
func formatAgo(t time.Time) string {
	if t.IsZero() {
		return "never"
	}
	switch d := time.Since(t); {
	case d < time.Minute:
		return "now"
	case d < time.Hour:
		return fmt.Sprintf("%dm ago", d/time.Minute)
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh ago", d/time.Hour)
	}
	return t.Local().Format(time.DateOnly)
}

// printRawJSONList prints JSON values as one array, with a line for each value. The bytes of a value stay unchanged,
// except that invisible characters are escaped.
func printRawJSONList(w io.Writer, items []json.RawMessage) error {
	var b bytes.Buffer
	b.WriteByte('[')
	for i, item := range items {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString("\n  ")
		b.Write(item)
	}
	b.WriteString("\n]\n")
	_, err := w.Write(safetext.JSON(b.Bytes()))
	return err
}

// parseTime parses a moment as a person writes it: a time of today, or a local date with or without a time. It also
// accepts an RFC 3339 time, and a duration before now such as "2h".
func parseTime(text string, now time.Time) (time.Time, error) {
	if d, err := time.ParseDuration(strings.TrimPrefix(text, "-")); err == nil {
		return now.Add(-d), nil
	}
	if t, err := time.Parse(time.RFC3339Nano, text); err == nil {
		return t, nil
	}
	for _, layout := range []string{"2006-01-02 15:04:05", "2006-01-02 15:04", time.DateOnly} {
		if t, err := time.ParseInLocation(layout, text, now.Location()); err == nil {
			return t, nil
		}
	}
	for _, layout := range []string{"15:04:05", "15:04"} {
		if t, err := time.ParseInLocation(layout, text, now.Location()); err == nil {
			y, m, d := now.Date()
			return time.Date(y, m, d, t.Hour(), t.Minute(), t.Second(), 0, now.Location()), nil
		}
	}
	return time.Time{},
		fmt.Errorf("%q is not a time: write 14:02, \"2006-01-02 15:04\", an RFC 3339 time, or a duration before now, such as 2h", text)
}
