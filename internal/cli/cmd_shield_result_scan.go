package cli

import (
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"strings"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/deck"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
	"github.com/drawbridge-mcp/drawbridge/internal/shield"
)

// An resultScanner looks at what calls answered, wherever the gateway looks that holds such answers back: in names,
// too, and in bytes that are a text.
type resultScanner struct{ *shield.Shield }

// scan is shield.Result, with what the gateway's own look finds besides.
func (a resultScanner) scan(raw json.RawMessage) (shield.Report, error) {
	report, err := a.CheckResult(raw)
	if err != nil {
		return report, err
	}
	looked := map[string]bool{} // the texts that need no other look
	for t := range eachJSONText(raw) {
		if !t.isName && !t.isBinary() {
			looked[t.text] = true
		}
	}
	found := map[string][]shield.Finding{}
	var order []string
	eachGuardedText(raw, func(text string) (string, []string) {
		if looked[text] {
			return text, nil
		}
		looked[text] = true
		_, _, reasons := a.CheckResultText(text)
		rules := shield.RuleNames(reasons)
		if len(rules) > 0 {
			order, found[text] = append(order, text), reasons
		}
		return text, rules
	})
	if len(found) == 0 {
		return report, nil
	}
	paths := textPointers(raw, found)
	for _, text := range order {
		for _, r := range found[text] {
			r.Path = paths[text]
			if r.Action == "stripped" { // names and bytes are shown as they came
				r.Action = "flagged"
			}
			report.Reasons = append(report.Reasons, r)
		}
	}
	report.Verdict = min(report.Verdict, shield.VerdictFlagged)
	return report, nil
}

// eachGuardedText returns each text of an answer to look that the gateway looks at before it lets the answer pass.
// Which method answers so the answer says itself, by what it has, but a server may say what it likes: it is looked at
// as the answer to each, where what may be bytes in Base64 counts only for the methods that it belongs to.
func eachGuardedText(raw json.RawMessage, look func(text string) (shown string, rules []string)) {
	plainly := func(text string) (string, []string) {
		if isBase64Alphabet(text) {
			return text, nil
		}
		return look(text)
	}
	has := func(member string) bool { return rawjson.Get(raw, member) != nil }
	read, said, waited := has("contents"), has("messages"), has("result")
	for _, as := range []struct {
		method string
		own    bool
	}{
		{mcp.MethodToolsCall, has("content") || has("structuredContent") || !read && !said && !waited},
		{mcp.MethodResourcesRead, read}, {mcp.MethodPromptsGet, said}, {mcp.MethodTasksGet, waited},
	} {
		desk := deck.ResultGuard{
			MarkFor: func(drawbridge.Caller) bool { return false }, Inspect: plainly,
			RecordAction: func(drawbridge.ServerID, string, string, string) {}, Log: slog.New(slog.DiscardHandler),
		}
		if as.own {
			desk.Inspect = look
		}
		pass := desk.FilterFor(drawbridge.Call{Method: as.method}, "", "", "", nil, true)
		_, _ = pass.Apply(context.Background(), raw) // what it met is known to look
	}
}

// isBase64Alphabet reports whether a text has no character but those of Base64, in any of its alphabets.
func isBase64Alphabet(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool {
		return !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' ||
			strings.ContainsRune("+/-_=\r\n", r))
	})
}

// textPointers says where texts of an answer stand first: as they are, or as the bytes in Base64 that they were read
// from.
func textPointers(raw json.RawMessage, of map[string][]shield.Finding) map[string]string {
	at := map[string]string{}
	for t := range eachJSONText(raw) {
		for _, said := range append(t.decodedTexts(), t.text) {
			_, known := at[said]
			if _, wanted := of[said]; wanted && !known {
				at[said] = t.pointer()
			}
		}
	}
	return at
}

// isBinary reports whether a text stands where bytes belong.
func (t jsonText) isBinary() bool {
	return !t.isName && slices.Contains([]string{"data", "blob"}, t.memberName())
}

// decodedTexts returns the texts that the gateway reads the bytes as.
func (t jsonText) decodedTexts() (said []string) {
	if t.isBinary() {
		alone := slices.Concat([]byte(`{"contents":[{"blob":`), rawjson.Quote(t.text), []byte("}]}"))
		eachGuardedText(alone, func(text string) (string, []string) {
			said = append(said, text)
			return text, nil
		})
	}
	return said
}
