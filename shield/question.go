package shield

import (
	"encoding/json"
	"net/url"
	"slices"

	"github.com/drawbridge-mcp/drawbridge/shield/words"
)

// Question judges what a server asks a person: the params of an elicitation. What the person reads (the message, titles,
// descriptions, the names of choices) is treated as the texts of a definition are. The names and the values of fields, to which
// the answer refers, and the address of a page stay as they are, and are flagged at most. The error is that of Definition.
func (s *Shield) Question(raw json.RawMessage) (Report, error) {
	return s.walk(raw, func(w *walker, text string, key bool) string {
		switch {
		case w.within("_meta"), key && len(text) < 12 && short(text):
			return text
		case !key && len(w.stack) == 1 && w.member() == "url":
			w.note(address(text))
			return text
		case !key && w.forPeople():
			out, reasons := s.text(text, "", words.MostText, words.Nowhere, nil)
			w.note(reasons)
			return out
		}
		w.note(s.seenIn(text))
		return text
	})
}

// address is what is to be said of the address of a page that a person is sent to.
func address(text string) (reasons []Reason) {
	u, err := url.Parse(text)
	web := err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != ""
	if web {
		_, web = Host(u.Hostname())
	}
	switch {
	case !web:
		reasons = append(reasons, Reason{Rule: "page", Did: "flagged", Why: "leads to what is no page of the web", Excerpt: excerpt(text)})
	case mixed(u.Hostname()):
		reasons = append(reasons, Reason{Rule: "lookalikes", Did: "flagged", Why: "leads to a host with letters of several alphabets in a word", Excerpt: excerpt(u.Host)})
	}
	_, traces := words.Canonical(text)
	for _, r := range traced(traces, "") {
		r.Did = "flagged" // the address stays as it is
		reasons = append(reasons, r)
	}
	return reasons
}

// Prompt judges what a server wants a model to be given: the params of a sampling, or the messages of a prompt. Orders to a model
// are what those are for, so they are judged as results are: what cannot be seen is taken out, and nothing is blanked.
func (s *Shield) Prompt(raw json.RawMessage) (Report, error) {
	return s.walk(raw, func(w *walker, text string, key bool) string {
		if key || w.within("_meta") || w.member() != "text" && w.member() != "systemPrompt" {
			return text
		}
		out, reasons := s.result(text, "", words.Nowhere)
		w.note(reasons)
		return out
	})
}

// RulesMet are the names of the rules that count among reasons, each once, in their order.
func RulesMet(reasons []Reason) (names []string) {
	for _, r := range reasons {
		if r.counts() && !slices.Contains(names, r.Rule) {
			names = append(names, r.Rule)
		}
	}
	return names
}

// within says whether the walker is in the member of that name of the outermost object.
func (w *walker) within(name string) bool {
	return len(w.stack) > 1 && !w.stack[0].array && w.stack[0].key == name
}

// forPeople says whether a person is shown the value that the walker is at, and nothing refers to it.
func (w *walker) forPeople() bool {
	switch w.member() {
	case "message":
		return len(w.stack) == 1
	case "title", "description", "enumNames":
		return w.within("requestedSchema")
	}
	return false
}

// seenIn is what is to be said of a text that stays as it is.
func (s *Shield) seenIn(text string) []Reason {
	_, reasons := s.text(text, "", words.MostText, words.Nowhere, nil)
	kept := reasons[:0]
	for _, r := range reasons {
		switch r.Did {
		case "stripped", "blanked":
			r.Did = "flagged"
		case "cut":
			continue
		}
		kept = append(kept, r)
	}
	return kept
}
