package cards

import (
	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/deck"
)

// The groups to which cards belong, from which profiles select (see [deck.Membership]). readOnly is for built-in cards
// that only read, mutating for the other built-in cards, appOnly for the app cards.
var (
	readOnly = []deck.Membership{deck.MemberSurvey, deck.MemberAll}
	mutating = []deck.Membership{deck.MemberAll}
	appOnly  = []deck.Membership{deck.MemberApp}
)

// NewCatalogue returns the catalogue of the cards that Drawbridge ships: the built-in cards, then the app cards.
func NewCatalogue() *deck.Catalogue {
	c, err := deck.NewCatalogue(append(BuiltinDescriptors(), AppCards()...)...)
	if err != nil {
		panic(err) // the list below is fixed
	}
	return c
}

// BuiltinDescriptors returns the descriptions of the built-in cards, in listed order.
func BuiltinDescriptors() []deck.Card {
	lists := NewChecklists() // the cards todo_read and todo_set of one returned list share their checklists
	return []deck.Card{
		{ID: "read", Title: "Read file", Summary: "Read a text file, an image or a notebook.", Profiles: readOnly,
			Build: newReadCard},
		{ID: "ls", Title: "List directory", Summary: "List a directory.", Profiles: readOnly, Build: newLsCard},
		{ID: "grep", Title: "Search files", Summary: "Search the content of files.", Profiles: readOnly, Build: newGrepCard},
		{ID: "find", Title: "Find files", Summary: "Find files and directories by name.", Profiles: readOnly,
			Build: newFindCard},
		{ID: "websearch", Title: "Search the web", Summary: "Search the web.", Profiles: readOnly,
			Build: newWebsearchCard},
		{ID: "webfetch", Title: "Fetch page", Summary: "Fetch a page of the web as Markdown.", Profiles: readOnly,
			Build: newWebfetchCard},
		{ID: "todo_read", Title: "Read checklist", Summary: "Show the checklist of this run.", Profiles: readOnly,
			Build: func(c deck.Context) (drawbridge.Card, error) { return newTodoReadCard(c, lists) }},
		{ID: "write", Title: "Write file", Summary: "Write a whole file.", Profiles: mutating, Build: newWriteCard},
		{ID: "edit", Title: "Edit file", Summary: "Replace a text in a file.", Profiles: mutating, Build: newEditCard},
		{ID: "bash", Title: "Run command", Summary: "Run a shell command.", Profiles: mutating, Build: newBashCard},
		{ID: "process", Title: "Background commands", Summary: "Run commands in the background.", Profiles: mutating,
			Build: newProcessCard},
		{ID: "todo_set", Title: "Update checklist", Summary: "Replace the checklist of this run.", Profiles: mutating,
			Build: func(c deck.Context) (drawbridge.Card, error) { return newTodoSetCard(c, lists) }},
	}
}

// AppCards returns the descriptions of the app cards, in listed order.
func AppCards() []deck.Card {
	return []deck.Card{
		{ID: "todo", Title: "Checklist", Summary: "Keep a checklist with states and weights.", Profiles: appOnly,
			Build: newTodoCard},
		{ID: "bg-process", Title: "Background process", Summary: "Run commands in the background.", Profiles: appOnly,
			Build: newBgProcessCard},
		{ID: "task", Title: "Delegate a task", Summary: "Have another agent carry out a task.", Profiles: appOnly,
			Build: newTaskCard},
		{ID: "saas-action", Title: "Act in a service", Summary: "Find and run actions of connected services.",
			Profiles: appOnly, Build: newSaaSCard},
		{ID: "memory", Title: "Working memory", Summary: "Keep a note for this run.", Profiles: appOnly,
			Build: newMemoryCard},
		{ID: "enter_plan_mode", Title: "Plan first", Summary: "Ask to plan before acting.", Profiles: appOnly,
			Build: newEnterPlanCard},
		{ID: "exit_plan_mode", Title: "Present the plan", Summary: "Present the plan, so that it can be approved.",
			Profiles: appOnly, Build: newExitPlanCard},
	}
}

// BuildBuiltin builds the built-in card with the given ID. For its errors, see [deck.Catalogue.Build].
func BuildBuiltin(id drawbridge.CardName, c deck.Context) (drawbridge.Card, error) {
	return builtins().Build(id, c)
}

// BuildBuiltinsForProfile builds the built-in cards that a profile selects, in order. For its errors, see
// [deck.Provision].
func BuildBuiltinsForProfile(p deck.Profile, c deck.Context) ([]drawbridge.Card, error) {
	built, err := deck.Provision(builtins(), p, c)
	if err != nil {
		return nil, err
	}
	return built.Tools(), nil
}

func builtins() *deck.Catalogue {
	c, err := deck.NewCatalogue(BuiltinDescriptors()...)
	if err != nil {
		panic(err) // the list is fixed
	}
	return c
}
