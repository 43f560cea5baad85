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

// A resultScanner checks the results of calls. It checks the same texts as the gateway, including member names and
// Base64 data that decodes to text.
type resultScanner struct{ *shield.Shield }

// scan checks a result and returns the report of CheckResult. It adds the findings in texts that the gateway checks but
// CheckResult skips, such as member names and Base64 data.
func (a resultScanner) scan(ctx context.Context, raw json.RawMessage) (shield.Report, error) {
	report, err := a.CheckResult(raw)
	if err != nil {
		return report, err
	}
	looked := map[string]bool{} // the texts that were examined
	for t := range eachJSONText(raw) {
		if !t.isName && !t.isBinary() {
			looked[t.text] = true
		}
	}
	found := map[string][]shield.Finding{}
	var order []string
	eachGuardedText(ctx, raw, func(text string) (string, []string) {
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
	if err := ctx.Err(); err != nil || len(found) == 0 { // a canceled scan must not count as clean
		return report, err
	}
	paths := textPointers(ctx, raw, found)
	for _, text := range order {
		for _, r := range found[text] {
			r.Path = paths[text]
			if r.Action == "stripped" { // names and binary data stay unchanged
				r.Action = "flagged"
			}
			report.Reasons = append(report.Reasons, r)
		}
	}
	report.Verdict = min(report.Verdict, shield.VerdictFlagged)
	return report, nil
}

// eachGuardedText calls look with each text of a result that the gateway would check. Which texts the gateway checks
// depends on the method of the call, which is unknown here. Therefore eachGuardedText processes the result as a result
// of each method: tools/call, resources/read, prompts/get and tasks/get. The members of a result, such as "contents"
// for resources/read, suggest its method. A text that may be Base64 is passed to look only for a method that the
// members suggest.
func eachGuardedText(ctx context.Context, raw json.RawMessage, look func(text string) (shown string, rules []string)) {
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
		pass := desk.FilterFor(drawbridge.Call{Method: as.method}, "", "", "", deck.ResultTreatment{Hold: true})
		_, _ = pass.Apply(ctx, raw) // look has received the texts
	}
}

// isBase64Alphabet reports whether a text contains only characters of one of the Base64 alphabets and line ends.
func isBase64Alphabet(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool {
		return !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' ||
			strings.ContainsRune("+/-_=\r\n", r))
	})
}

// textPointers returns where the texts that are the keys of the map first occur in a result, as JSON pointers by text.
// A text may occur as it is or encoded in Base64.
func textPointers(ctx context.Context, raw json.RawMessage, of map[string][]shield.Finding) map[string]string {
	at := map[string]string{}
	for t := range eachJSONText(raw) {
		for _, said := range append(t.decodedTexts(ctx), t.text) {
			_, known := at[said]
			if _, wanted := of[said]; wanted && !known {
				at[said] = t.pointer()
			}
		}
	}
	return at
}

// isBinary reports whether the text is the value of a member for binary data: "data" or "blob".
func (t jsonText) isBinary() bool {
	return !t.isName && slices.Contains([]string{"data", "blob"}, t.memberName())
}

// decodedTexts returns the texts that the gateway decodes from t if t is binary data. For other text it returns nil.
func (t jsonText) decodedTexts(ctx context.Context) (said []string) {
	if t.isBinary() {
		alone := slices.Concat([]byte(`{"contents":[{"blob":`), rawjson.Quote(t.text), []byte("}]}"))
		eachGuardedText(ctx, alone, func(text string) (string, []string) {
			said = append(said, text)
			return text, nil
		})
	}
	return said
}
