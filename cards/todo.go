package cards

import (
	"context"
	_ "embed" // the descriptions
	"fmt"
	"strings"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/deck"
)

var (
	//go:embed todo_read.md
	todoReadText string
	//go:embed todo_set.md
	todoSetText string
)

// maxTodoItems is the maximum number of items in a checklist, maxTodoText the maximum number of bytes of an item's
// text.
const (
	maxTodoItems = 500
	maxTodoText  = 2000
)

// A todoItem is an item of the checklist of a run.
type todoItem struct {
	ID     string `json:"id" jsonschema:"Identifies the item within the list."`
	Text   string `json:"text" jsonschema:"What is to be done."`
	Status string `json:"status" jsonschema:"pending, active or done."`
}

type todoReadInput struct {
	Session string `json:"session,omitempty" jsonschema:"Names one of several checklists; usually absent."`
}

type todoSetInput struct {
	Items   []todoItem `json:"items" jsonschema:"The whole list; it replaces the present one."`
	Session string     `json:"session,omitempty" jsonschema:"Names one of several checklists; usually absent."`
}

type todoOutput struct {
	Items []todoItem     `json:"items"`
	Tally map[string]int `json:"tally"`
}

// todoMarks are the texts that mark the status of an item in a listing.
var todoMarks = map[string]string{"pending": "[ ]", "active": "[~]", "done": "[x]"}

// Checklists stores the checklist of each run. The cards todo_read and todo_set share one value.
type Checklists struct{ lists *stateTable[[]todoItem] }

// NewChecklists returns empty checklists.
func NewChecklists() *Checklists { return &Checklists{newStateTable[[]todoItem]()} }

func newTodoReadCard(c deck.Context, lists *Checklists) (drawbridge.Card, error) {
	lists, err := checklistsOf(c, lists)
	if err != nil {
		return nil, err
	}
	return newShipped(Description[todoReadInput]{
		Name: "todo_read", Title: "Read checklist", Text: todoReadText, Examples: []todoReadInput{{}}, AcceptsText: true,
	}, func(_ context.Context, call drawbridge.Call, in todoReadInput) (answer Answer[todoOutput], err error) {
		lists.lists.use(call.Caller, in.Session, func(items *[]todoItem) { answer = describeTodo(*items) })
		return answer, nil
	}), nil
}

func newTodoSetCard(c deck.Context, lists *Checklists) (drawbridge.Card, error) {
	lists, err := checklistsOf(c, lists)
	if err != nil {
		return nil, err
	}
	return newShipped(Description[todoSetInput]{
		Name: "todo_set", Title: "Update checklist", Text: todoSetText, AcceptsText: true,
		Annotations: &Annotations{Idempotent: true},
		Examples:    []todoSetInput{{Items: []todoItem{{ID: "1", Text: "Read the issue", Status: "active"}}}},
	}, func(_ context.Context, call drawbridge.Call, in todoSetInput) (answer Answer[todoOutput], err error) {
		if err := checkTodo(in.Items); err != nil {
			return answer, err
		}
		lists.lists.use(call.Caller, in.Session, func(items *[]todoItem) {
			*items = in.Items
			answer = describeTodo(in.Items)
		})
		return answer, nil
	}), nil
}

// checkTodo returns a ToolError if a list is invalid.
func checkTodo(items []todoItem) error {
	if len(items) > maxTodoItems {
		return ToolError(fmt.Sprintf("The list has %d items; %d are allowed.", len(items), maxTodoItems))
	}
	seen := make(map[string]bool, len(items))
	for i, item := range items {
		switch {
		case strings.TrimSpace(item.ID) == "":
			return ToolError(fmt.Sprintf("Item %d has no id.", i+1))
		case seen[item.ID]:
			return ToolError(fmt.Sprintf("Two items have the id %q.", item.ID))
		case strings.TrimSpace(item.Text) == "" || len(item.Text) > maxTodoText:
			return ToolError(fmt.Sprintf("Item %q needs a text of 1 to %d bytes.", item.ID, maxTodoText))
		case todoMarks[item.Status] == "":
			return ToolError(fmt.Sprintf("Item %q has the status %q; it must be pending, active or done.", item.ID,
				item.Status))
		}
		seen[item.ID] = true
	}
	return nil
}

// describeTodo returns the answer with the items, their marks and the number of items of each status.
func describeTodo(items []todoItem) Answer[todoOutput] {
	out := todoOutput{Items: append([]todoItem{}, items...), Tally: map[string]int{"pending": 0, "active": 0, "done": 0}}
	var b strings.Builder
	for _, item := range items {
		fmt.Fprintf(&b, "%s %s: %s\n", todoMarks[item.Status], item.ID, item.Text)
		out.Tally[item.Status]++
	}
	if len(items) == 0 {
		return Answer[todoOutput]{Text: "The checklist is empty.", Value: out}
	}
	fmt.Fprintf(&b, "%d done, %d active, %d pending\n", out.Tally["done"], out.Tally["active"], out.Tally["pending"])
	return Answer[todoOutput]{Text: b.String(), Value: out}
}

// checklistsOf returns the checklists in the context. If the context has none, it returns the argument otherwise.
func checklistsOf(c deck.Context, otherwise *Checklists) (*Checklists, error) {
	lists, err := deck.Handle[*Checklists](c, ChecklistsKey)
	if lists == nil {
		lists = otherwise
	}
	return lists, err
}
