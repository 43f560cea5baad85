package shield

import (
	"encoding/json"
	"net/url"
	"slices"

	"github.com/drawbridge-mcp/drawbridge/internal/injection"
)

// CheckQuestion judges what a server asks a person: the params of an elicitation. What the person reads (the message,
// titles, descriptions, the names of choices) is treated as the texts of a definition are. The names and the values of
// fields, to which the answer refers, and the address of a page stay as they are, and are flagged at most. The error
// is that of Definition.
func (s *Shield) CheckQuestion(raw json.RawMessage) (Report, error) {
	return s.walkTexts(raw, func(w *jsonWalker, text string, key bool) string {
		switch {
		case w.isInTopMember("_meta"), key && len(text) < 12 && isPlainKey(text):
			return text
		case !key && len(w.stack) == 1 && w.currentMember() == "url":
			w.addFindings(checkPageAddress(text))
			return text
		case !key && w.isShownToPeople():
			out, reasons := s.checkText(text, "", injection.MaxDefinitionText, injection.PlaceNone, nil, nil)
			w.addFindings(reasons)
			return out
		}
		w.addFindings(s.inspectUnchanged(text))
		return text
	})
}

// checkPageAddress is what is to be said of the address of a page that a person is sent to.
func checkPageAddress(text string) (reasons []Finding) {
	u, err := url.Parse(text)
	web := err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != ""
	if web {
		_, web = NormalizeHost(u.Hostname())
	}
	switch {
	case !web:
		reasons = append(reasons, Finding{Rule: "page", Action: "flagged", Why: "leads to what is no page of the web",
			Excerpt: safeExcerpt(text)})
	case mixesAlphabets(u.Hostname()):
		reasons = append(reasons, Finding{Rule: "lookalikes", Action: "flagged",
			Why: "leads to a host with letters of several alphabets in a word", Excerpt: safeExcerpt(u.Host)})
	}
	_, traces := injection.CanonicalText(text)
	for _, r := range removalFindings(traces, "") {
		r.Action = "flagged" // the address stays as it is
		reasons = append(reasons, r)
	}
	return reasons
}

// CheckPrompt judges what a server wants a model to be given: the params of a sampling, or the messages of a prompt.
// Orders to a model are what those are for, so they are judged as results are: what cannot be seen is taken out, and
// nothing is blanked.
func (s *Shield) CheckPrompt(raw json.RawMessage) (Report, error) {
	return s.walkTexts(raw, func(w *jsonWalker, text string, key bool) string {
		if key || w.isInTopMember("_meta") || w.currentMember() != "text" && w.currentMember() != "systemPrompt" {
			return text
		}
		out, reasons := s.checkResultText(text, "", injection.PlaceNone)
		w.addFindings(reasons)
		return out
	})
}

// RuleNames are the names of the rules that count among reasons, each once, in their order.
func RuleNames(reasons []Finding) (names []string) {
	for _, r := range reasons {
		if r.affectsVerdict() && !slices.Contains(names, r.Rule) {
			names = append(names, r.Rule)
		}
	}
	return names
}

// isInTopMember reports whether the walker is in the member of that name of the outermost object.
func (w *jsonWalker) isInTopMember(name string) bool {
	return len(w.stack) > 1 && !w.stack[0].array && w.stack[0].key == name
}

// isShownToPeople reports whether a person is shown the value that the walker is at, and nothing refers to it.
func (w *jsonWalker) isShownToPeople() bool {
	switch w.currentMember() {
	case "message":
		return len(w.stack) == 1
	case "title", "description", "enumNames":
		return w.isInTopMember("requestedSchema")
	}
	return false
}

// inspectUnchanged is what is to be said of a text that stays as it is.
func (s *Shield) inspectUnchanged(text string) []Finding {
	_, reasons := s.checkText(text, "", injection.MaxDefinitionText, injection.PlaceNone, nil, nil)
	kept := reasons[:0]
	for _, r := range reasons {
		switch r.Action {
		case "stripped", "blanked":
			r.Action = "flagged"
		case "cut":
			continue
		}
		kept = append(kept, r)
	}
	return kept
}
