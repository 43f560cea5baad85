package cards

import (
	"context"
	_ "embed" // the descriptions
	"encoding/json"
	"fmt"
	"path"
	"strings"
	"sync"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/deck"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
)

var (
	//go:embed todo.md
	todoText string
	//go:embed task.md
	taskText string
	//go:embed saas_action.md
	saasText string
	//go:embed memory.md
	memoryText string
	//go:embed enter_plan_mode.md
	enterPlanText string
	//go:embed exit_plan_mode.md
	exitPlanText string
)

// A Delegate lets another agent carry out a task.
type Delegate interface {
	// RunTask lets the agent carry out a task for the caller of call, and returns the agent's report.
	RunTask(ctx context.Context, call drawbridge.Call, task Task) (report string, err error)
}

// A Task is what another agent carries out.
type Task struct {
	Objective string
	// Tools are patterns of the tools that the agent may call; nil means those of the caller. They only narrow.
	Tools []string
}

// A SaaSGateway finds and runs actions of connected services.
type SaaSGateway interface {
	// DiscoverActions returns the actions that match a query, best first.
	DiscoverActions(ctx context.Context, call drawbridge.Call, query string) ([]SaaSAction, error)
	// ExecuteAction runs an action for the caller of call, and returns its result.
	ExecuteAction(ctx context.Context, call drawbridge.Call, action string,
		arguments json.RawMessage) (drawbridge.Result, error)
}

// A SaaSAction is an action of a connected service.
type SaaSAction struct {
	Name        string          `json:"name"`
	Summary     string          `json:"summary"`
	InputSchema json.RawMessage `json:"inputSchema,omitempty" jsonschema:"The schema of the arguments."`
}

// A MemoryStore stores a note, which is a text, for each run of an agent. run is the key of the run.
type MemoryStore interface {
	ReadMemory(ctx context.Context, run string) (string, error)
	ReplaceMemory(ctx context.Context, run, text string) error
}

// maxMemory is the maximum size of a note in bytes.
const maxMemory = 64 << 10

// InMemoryStore is a MemoryStore in the memory of the process.
type InMemoryStore struct{ notes *stateTable[string] }

// NewInMemoryStore returns an empty store.
func NewInMemoryStore() *InMemoryStore { return &InMemoryStore{newStateTable[string]()} }

// ReadMemory returns the note of a run; empty if there is none.
func (s *InMemoryStore) ReadMemory(_ context.Context, run string) (text string, err error) {
	s.notes.use(drawbridge.Caller{Run: run}, "", func(note *string) { text = *note })
	return text, nil
}

// ReplaceMemory replaces the note of a run.
func (s *InMemoryStore) ReplaceMemory(_ context.Context, run, text string) error {
	s.notes.use(drawbridge.Caller{Run: run}, "", func(note *string) { *note = text })
	return nil
}

// appTodoItem is an item of the list of the card todo.
type appTodoItem struct {
	Text   string `json:"text" jsonschema:"What is to be done."`
	State  string `json:"state,omitempty" jsonschema:"pending, active, done or dropped; pending if absent."`
	Weight string `json:"weight,omitempty" jsonschema:"low, normal or high; normal if absent."`
}

type appTodoInput struct {
	Action  string        `json:"action" jsonschema:"read or set."`
	Items   []appTodoItem `json:"items,omitempty" jsonschema:"For set: the whole new list."`
	Session string        `json:"session,omitempty" jsonschema:"Names one of several lists; usually absent."`
}

type appTodoOutput struct {
	Items []appTodoItem `json:"items"`
}

var appTodoMarks = map[string]string{"pending": "[ ]", "active": "[~]", "done": "[x]", "dropped": "[-]"}

// newTodoCard returns the app card todo. Its checklist is separate from the checklist of the cards todo_read and
// todo_set.
func newTodoCard(deck.Context) (drawbridge.Card, error) {
	lists := newStateTable[[]appTodoItem]()
	return newShipped(Description[appTodoInput]{
		Name: "todo", Title: "Checklist", Text: todoText, AcceptsText: true,
		Annotations: &Annotations{Idempotent: true}, Examples: []appTodoInput{{Action: "read"}},
	}, func(_ context.Context, call drawbridge.Call, in appTodoInput) (answer Answer[appTodoOutput], err error) {
		switch in.Action {
		case "read":
		case "set":
			if err := completeAppTodo(in.Items); err != nil {
				return answer, err
			}
		default:
			return answer, unknownAction(in.Action, "read", "set")
		}
		lists.use(call.Caller, in.Session, func(items *[]appTodoItem) {
			if in.Action == "set" {
				*items = in.Items
			}
			answer = describeAppTodo(*items)
		})
		return answer, nil
	}), nil
}

// completeAppTodo sets absent states and weights to their defaults, and checks the items. The error is a ToolError.
func completeAppTodo(items []appTodoItem) error {
	if len(items) > maxTodoItems {
		return ToolError(fmt.Sprintf("The list has %d items; %d are allowed.", len(items), maxTodoItems))
	}
	for i := range items {
		item := &items[i]
		if item.State == "" {
			item.State = "pending"
		}
		if item.Weight == "" {
			item.Weight = "normal"
		}
		switch {
		case strings.TrimSpace(item.Text) == "" || len(item.Text) > maxTodoText:
			return ToolError(fmt.Sprintf("Item %d needs a text of 1 to %d bytes.", i+1, maxTodoText))
		case appTodoMarks[item.State] == "":
			return ToolError(fmt.Sprintf("Item %d has the state %q; it must be pending, active, done or dropped.", i+1,
				item.State))
		case item.Weight != "low" && item.Weight != "normal" && item.Weight != "high":
			return ToolError(fmt.Sprintf("Item %d has the weight %q; it must be low, normal or high.", i+1, item.Weight))
		}
	}
	return nil
}

func describeAppTodo(items []appTodoItem) Answer[appTodoOutput] {
	var b strings.Builder
	for _, item := range items {
		fmt.Fprintf(&b, "%s %s", appTodoMarks[item.State], item.Text)
		if item.Weight != "normal" {
			fmt.Fprintf(&b, " (%s)", item.Weight)
		}
		b.WriteByte('\n')
	}
	if len(items) == 0 {
		b.WriteString("The list is empty.")
	}
	return Answer[appTodoOutput]{Text: b.String(), Value: appTodoOutput{append([]appTodoItem{}, items...)}}
}

// unknownAction returns the error for an action that a card does not have. known are the actions that it has.
func unknownAction(action string, known ...string) ToolError {
	return ToolError(fmt.Sprintf("Unknown action %q; it must be %s.", action, strings.Join(known, ", ")))
}

type taskInput struct {
	Objective string `json:"objective" jsonschema:"The task, and everything that the agent must know for it."`
	// Tools only narrow: the agent has no tool that its caller has not.
	Tools []string `json:"tools,omitempty" jsonschema:"Patterns of the tools that the agent may call, such as github__*; absent for all."`
}

type taskOutput struct {
	Connected bool   `json:"connected"`
	Report    string `json:"report,omitempty"`
}

// newTaskCard returns the app card task.
func newTaskCard(c deck.Context) (drawbridge.Card, error) {
	delegate, err := deck.Handle[Delegate](c, DelegateKey)
	if err != nil {
		return nil, err
	}
	return newShipped(Description[taskInput]{
		Name: "task", Title: "Delegate a task", Text: taskText, AcceptsText: true, Scopes: []drawbridge.Scope{"agent"},
		Annotations: &Annotations{OpenWorld: true},
		Examples:    []taskInput{{Objective: "List the packages of this module that have no tests."}},
	}, func(ctx context.Context, call drawbridge.Call, in taskInput) (Answer[taskOutput], error) {
		switch {
		case strings.TrimSpace(in.Objective) == "":
			return Answer[taskOutput]{}, ToolError("The objective is empty.")
		case delegate == nil:
			return Answer[taskOutput]{Text: "No agent is connected that could carry out tasks.", IsError: true}, nil
		}
		for _, pattern := range in.Tools {
			if _, err := path.Match(pattern, ""); err != nil {
				return Answer[taskOutput]{}, ToolError("The pattern " + safetext.Quote(pattern) + " is not valid.")
			}
		}
		report, err := delegate.RunTask(ctx, call, Task(in))
		return Answer[taskOutput]{Text: report, Value: taskOutput{true, report}}, err
	}), nil
}

type saasInput struct {
	Action    string         `json:"action" jsonschema:"discover or execute."`
	Query     string         `json:"query,omitempty" jsonschema:"For discover: what the action should do."`
	Name      string         `json:"name,omitempty" jsonschema:"For execute: the name of the action, as discover returned it."`
	Arguments map[string]any `json:"arguments,omitempty" jsonschema:"For execute: the arguments of the action."`
}

type saasOutput struct {
	Connected bool         `json:"connected"`
	Actions   []SaaSAction `json:"actions,omitempty"`
}

// newSaaSCard returns the app card saas-action.
func newSaaSCard(c deck.Context) (drawbridge.Card, error) {
	gateway, err := deck.Handle[SaaSGateway](c, SaaSGatewayKey)
	if err != nil {
		return nil, err
	}
	return newShipped(Description[saasInput]{
		Name: "saas-action", Title: "Act in a service", Text: saasText, AcceptsText: true,
		Annotations: &Annotations{OpenWorld: true, Destructive: true},
		Examples:    []saasInput{{Action: "discover", Query: "create an issue"}},
	}, func(ctx context.Context, call drawbridge.Call, in saasInput) (answer Answer[saasOutput], err error) {
		switch {
		case in.Action != "discover" && in.Action != "execute":
			return answer, unknownAction(in.Action, "discover", "execute")
		case gateway == nil:
			return Answer[saasOutput]{Text: "No services are connected.", IsError: true}, nil
		case in.Action == "execute":
			if in.Name == "" {
				return answer, ToolError("execute needs the name of an action; discover returns names.")
			}
			arguments := json.RawMessage("{}")
			if in.Arguments != nil {
				arguments = mustMarshal(in.Arguments)
			}
			result, err := gateway.ExecuteAction(ctx, call, in.Name, arguments)
			return Answer[saasOutput]{Raw: result.Raw}, err
		}
		actions, err := gateway.DiscoverActions(ctx, call, in.Query)
		var b strings.Builder
		for _, action := range actions {
			fmt.Fprintf(&b, "%s: %s\n", action.Name, action.Summary)
		}
		if len(actions) == 0 {
			b.WriteString("No action matches.")
		}
		return Answer[saasOutput]{Text: b.String(), Value: saasOutput{true, actions}}, err
	}), nil
}

type memoryInput struct {
	Action  string `json:"action" jsonschema:"read, replace or append."`
	Text    string `json:"text,omitempty" jsonschema:"For replace and append."`
	Session string `json:"session,omitempty" jsonschema:"Names one of several notes; usually absent."`
}

type memoryOutput struct {
	Text string `json:"text"`
}

func memoryDescription() Description[memoryInput] {
	return Description[memoryInput]{
		Name: "memory", Title: "Working memory", Text: memoryText, AcceptsText: true, Annotations: &Annotations{},
		Examples: []memoryInput{{Action: "read"}, {Action: "append", Text: "The tests need Postgres."}},
	}
}

// newMemoryCard returns the app card memory.
func newMemoryCard(c deck.Context) (drawbridge.Card, error) {
	w, err := deck.Handle[Workspace](c, WorkspaceKey)
	if err != nil {
		return nil, err
	}
	if w != nil {
		return newNoteCard(w), nil
	}
	store, err := deck.Handle[MemoryStore](c, MemoryStoreKey)
	if err != nil {
		return nil, err
	}
	if store == nil {
		store = NewInMemoryStore()
	}
	var mu sync.Mutex // locked while a note is read and then replaced
	return newShipped(memoryDescription(), func(ctx context.Context, call drawbridge.Call, in memoryInput) (answer Answer[memoryOutput], err error) {
		run := deck.RunOf(call.Caller)
		if in.Session != "" {
			run += "\x00" + in.Session
		}
		mu.Lock()
		defer mu.Unlock()
		text, err := store.ReadMemory(ctx, run)
		if err != nil {
			return answer, fmt.Errorf("read the note: %w", err)
		}
		switch in.Action {
		case "read":
			if answer.Text = text; text == "" {
				answer.Text = "The note is empty."
			}
			answer.Value.Text = text
			return answer, nil
		case "replace":
			text = in.Text
		case "append":
			if text != "" && !strings.HasSuffix(text, "\n") {
				text += "\n"
			}
			text += in.Text
		default:
			return answer, unknownAction(in.Action, "read", "replace", "append")
		}
		if len(text) > maxMemory {
			return answer, ToolError(fmt.Sprintf("The note would have %d bytes; %d are allowed.", len(text), maxMemory))
		}
		if err := store.ReplaceMemory(ctx, run, text); err != nil {
			return answer, fmt.Errorf("store the note: %w", err)
		}
		return Answer[memoryOutput]{Text: fmt.Sprintf("The note now has %d byte(s).", len(text)),
			Value: memoryOutput{text}}, nil
	}), nil
}

type planInput struct{}

type enterPlanOutput struct {
	EnterPlanMode bool `json:"enterPlanMode"`
	Applied       bool `json:"applied"`
}

// newEnterPlanCard returns the card with which a model asks to plan before it acts. The card only returns a result. A
// host with a plan mode can detect the call and enter that mode.
func newEnterPlanCard(deck.Context) (drawbridge.Card, error) {
	return newShipped(Description[planInput]{
		Name: "enter_plan_mode", Title: "Plan first", Text: enterPlanText, AcceptsText: true, Examples: []planInput{{}},
	}, func(context.Context, drawbridge.Call, planInput) (Answer[enterPlanOutput], error) {
		return Answer[enterPlanOutput]{Text: "The host was asked for plan mode. It did not confirm it.",
			Value: enterPlanOutput{EnterPlanMode: true}}, nil
	}), nil
}

type exitPlanInput struct {
	Plan string `json:"plan" jsonschema:"The plan, as Markdown."`
}

type exitPlanOutput struct {
	ExitPlan bool   `json:"exitPlan"`
	Plan     string `json:"plan"`
}

// A PlanApprover asks the person of an agent's session about a plan.
type PlanApprover interface {
	// ApprovePlan shows a plan to the person and waits for the answer. text is what the model is told. The error is a
	// ToolError if the person cannot be asked.
	ApprovePlan(ctx context.Context, call drawbridge.Call, plan string) (approved bool, text string, err error)
}

// newExitPlanCard returns the card with which a model presents its plan. For an agent of Drawbridge, a person decides on
// it; for other callers the card only returns the plan.
func newExitPlanCard(c deck.Context) (drawbridge.Card, error) {
	approver, err := deck.Handle[PlanApprover](c, PlanApproverKey)
	if err != nil {
		return nil, err
	}
	return newShipped(Description[exitPlanInput]{
		Name: "exit_plan_mode", Title: "Present the plan", Text: exitPlanText, AcceptsText: true,
		Examples: []exitPlanInput{{Plan: "1. Read the tests.\n2. Mend the parser."}},
	}, func(ctx context.Context, call drawbridge.Call, in exitPlanInput) (Answer[exitPlanOutput], error) {
		if strings.TrimSpace(in.Plan) == "" {
			return Answer[exitPlanOutput]{}, ToolError("The plan is empty.")
		}
		if approver == nil || call.Caller.Agent == nil {
			return Answer[exitPlanOutput]{Text: in.Plan, Value: exitPlanOutput{true, in.Plan}}, nil
		}
		approved, text, err := approver.ApprovePlan(ctx, call, in.Plan)
		return Answer[exitPlanOutput]{Text: text, Value: exitPlanOutput{approved, in.Plan}, IsError: !approved}, err
	}), nil
}

// HarmlessTools returns the names of the cards that are not read-only but change nothing outside their session. What a
// script or another agent does is decided call by call.
func HarmlessTools() []string {
	return []string{"todo", "todo_set", "memory", "task", RunPythonName}
}

// EditTools returns the names of the cards that change files.
func EditTools() []string { return []string{"edit", "write"} }

// FileTools returns the names of the cards that read files and directories.
func FileTools() []string { return []string{"read", "ls", "grep", "find"} }

// CommandTools returns the names of the cards that run commands.
func CommandTools() []string { return []string{"bash", "process", "bg-process"} }

// FetchTools returns the names of the cards that send their arguments to the web.
func FetchTools() []string { return []string{"webfetch", "websearch"} }

// ExportTools returns the names of the cards that write pages into a directory.
func ExportTools() []string { return []string{"workspace_export"} }
