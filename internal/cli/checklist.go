package cli

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
)

// A checklistItem is one line of a checklist, in which a person marks items at a terminal.
type checklistItem struct {
	// Columns are the cells of the line, aligned with the cells of the other items. Note is printed below the line
	// unless it is empty.
	Columns []string
	Note    string
	Marked  bool
}

// askChecklist shows the items. The person marks and unmarks them by number, and ends with Enter. action is the verb
// for the effect of Enter on the marked items, such as "copies". marked contains the indexes of the marked items. The
// error means that there is no terminal, or that the person ended the input.
func (a *app) askChecklist(ctx context.Context, action string, items []checklistItem) (marked []int, err error) {
	d, ok := a.startDialogue(ctx)
	if !ok {
		return nil, errors.New("no terminal to ask at")
	}
	defer d.Close()
	return chooseItems(d, action, items)
}

func chooseItems(d *Dialogue, action string, items []checklistItem) (marked []int, err error) {
	d.Say(checklistText(items))
	for {
		answer, err := d.Ask("Enter " + action + " the marked ones; a number marks or unmarks, a is all, n is none: ")
		if err != nil {
			d.Say("")
			return nil, err
		}
		words := strings.FieldsFunc(answer, func(c rune) bool { return c == ' ' || c == ',' })
		if len(words) == 0 {
			break
		}
		if problem := markItems(items, words); problem != "" {
			d.Say(problem)
			continue
		}
		d.Say(checklistText(items))
	}
	for i, item := range items {
		if item.Marked {
			marked = append(marked, i)
		}
	}
	return marked, nil
}

// markItems changes the marks of the items according to words, the words of an answer: numbers of items, "all" or
// "none". If a word is invalid, markItems changes nothing and returns the problem.
func markItems(items []checklistItem, words []string) (problem string) {
	marks := make([]bool, len(items))
	for i, item := range items {
		marks[i] = item.Marked
	}
	for _, word := range words {
		n, err := strconv.Atoi(word)
		switch {
		case word == "a" || word == "all" || word == "n" || word == "none":
			for i := range marks {
				marks[i] = word[0] == 'a'
			}
		case err != nil || n < 1 || n > len(items):
			return safetext.Sprintf("%q is not a number of the list", word)
		default:
			marks[n-1] = !marks[n-1]
		}
	}
	for i := range items {
		items[i].Marked = marks[i]
	}
	return ""
}

// checklistText returns the text of a checklist: the lines of the items with their notes.
func checklistText(items []checklistItem) string {
	var widths []int
	for _, item := range items {
		for i, column := range item.Columns {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], len([]rune(column)))
		}
	}
	var b strings.Builder
	for i, item := range items {
		mark := "[ ]"
		if item.Marked {
			mark = "[x]"
		}
		line := safetext.Sprintf("  %s %2d  ", mark, i+1)
		for c, column := range item.Columns {
			line += column + strings.Repeat(" ", widths[c]-len([]rune(column))+2)
		}
		b.WriteString(strings.TrimRight(line, " ") + "\n")
		if item.Note != "" {
			b.WriteString("          " + item.Note + "\n")
		}
	}
	return strings.TrimRight(b.String(), "\n")
}
