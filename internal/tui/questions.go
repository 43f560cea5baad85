package tui

import "slices"

// questions are the dialogs that wait, the oldest first. A person answers the first one.
type questions []*dialog

// first returns the oldest dialog; nil if none waits.
func (q questions) first() *dialog {
	if len(q) == 0 {
		return nil
	}
	return q[0]
}

func (q *questions) add(d *dialog) { *q = append(*q, d) }

// remove removes the dialogs for which gone returns true.
func (q *questions) remove(gone func(d *dialog) bool) { *q = slices.DeleteFunc(*q, gone) }

// take takes messages of the Asker: it adds their questions, and removes those that were withdrawn. It returns the lines
// that stay in the scrollback.
func (q *questions) take(t *transcript, messages []any) (lines []string) {
	for _, message := range messages {
		switch message := message.(type) {
		case *inquiry:
			if t.plain && message.Kind == ReplySecret {
				lines = append(lines, "Error: plain output cannot hide what you type: use the command line outside of the session")
				message.reply <- nil
				continue
			}
			q.add(newInquiryDialog(message))
		case withdrawal:
			q.remove(func(d *dialog) bool {
				if d.asked == message.inquiry {
					lines = append(lines, d.withdrawn(t)...)
				}
				return d.asked == message.inquiry
			})
		case told:
			lines = append(lines, toldLines(t, message)...)
		}
	}
	return lines
}

// withdrawn returns what stays in the scrollback of the question of a command that was withdrawn. Plain output has printed
// it already, if it was shown.
func (d *dialog) withdrawn(t *transcript) []string {
	switch {
	case t.plain && !d.shown.IsZero():
		return []string{"The question is not needed any more."}
	case d.asked.Text != "":
		return outputLines(t, d.asked.Text)
	}
	return nil
}

// isOf returns a function that reports whether a dialog belongs to a call.
func isOf(path, call string) func(d *dialog) bool {
	return func(d *dialog) bool { return d.asked == nil && d.agent == path && d.call == call }
}

// isOfRun reports whether a dialog belongs to a call of a run, and not to a command.
func isOfRun(d *dialog) bool { return d.asked == nil }

// isSame returns a function that reports whether a dialog is this one.
func isSame(d *dialog) func(other *dialog) bool {
	return func(other *dialog) bool { return other == d }
}
