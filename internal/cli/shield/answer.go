package shield

import (
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"strings"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/deck"
	"github.com/drawbridge-mcp/drawbridge/shield"
	"github.com/drawbridge-mcp/drawbridge/wire"
)

// An answer looks at what calls answered, wherever the gateway looks that holds such answers back: in names, too, and in bytes that
// are a text.
type answer struct{ *shield.Shield }

// judge is shield.Result, with what the gateway's own look finds besides.
func (a answer) judge(raw json.RawMessage) (shield.Report, error) {
	report, err := a.Result(raw)
	if err != nil {
		return report, err
	}
	looked := map[string]bool{} // the texts that need no other look
	for t := range texts(raw) {
		if !t.name && !t.bytes() {
			looked[t.text] = true
		}
	}
	found := map[string][]shield.Reason{}
	var order []string
	inAnswer(raw, func(text string) (string, []string) {
		if looked[text] {
			return text, nil
		}
		looked[text] = true
		_, _, reasons := a.ResultText(text)
		rules := shield.RulesMet(reasons)
		if len(rules) > 0 {
			order, found[text] = append(order, text), reasons
		}
		return text, rules
	})
	if len(found) == 0 {
		return report, nil
	}
	paths := places(raw, found)
	for _, text := range order {
		for _, r := range found[text] {
			r.Path = paths[text]
			if r.Did == "stripped" { // names and bytes are shown as they came
				r.Did = "flagged"
			}
			report.Reasons = append(report.Reasons, r)
		}
	}
	report.Verdict = min(report.Verdict, shield.Flagged)
	return report, nil
}

// inAnswer gives each text of an answer to look that the gateway looks at before it lets the answer pass. Which method answers so the
// answer says itself, by what it has, but a server may say what it likes: it is looked at as the answer to each, where what may be
// bytes in Base64 counts only for the methods that it belongs to.
func inAnswer(raw json.RawMessage, look func(text string) (shown string, rules []string)) {
	plainly := func(text string) (string, []string) {
		if mayBeBytes(text) {
			return text, nil
		}
		return look(text)
	}
	has := func(member string) bool { return wire.Get(raw, member) != nil }
	read, said, waited := has("contents"), has("messages"), has("result")
	for _, as := range []struct {
		method string
		own    bool
	}{
		{wire.MethodToolsCall, has("content") || has("structuredContent") || !read && !said && !waited},
		{wire.MethodResourcesRead, read}, {wire.MethodPromptsGet, said}, {wire.MethodTasksGet, waited},
	} {
		desk := deck.ResultDesk{
			Always: func(drawbridge.Caller) bool { return false }, Look: plainly,
			Note: func(drawbridge.ServerID, string, string, string) {}, Log: slog.New(slog.DiscardHandler),
		}
		if as.own {
			desk.Look = look
		}
		pass := desk.Pass(drawbridge.Call{Method: as.method}, "", "", "", nil, true)
		_, _ = pass.Take(context.Background(), raw) // what it met is known to look
	}
}

// mayBeBytes says whether a text has no character but those of Base64, in any of its alphabets.
func mayBeBytes(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool {
		return !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || strings.ContainsRune("+/-_=\r\n", r))
	})
}

// places says where texts of an answer stand first: as they are, or as the bytes in Base64 that they were read from.
func places(raw json.RawMessage, of map[string][]shield.Reason) map[string]string {
	at := map[string]string{}
	for t := range texts(raw) {
		for _, said := range append(t.decoded(), t.text) {
			_, known := at[said]
			if _, wanted := of[said]; wanted && !known {
				at[said] = t.pointer()
			}
		}
	}
	return at
}

// bytes says whether a text stands where bytes belong.
func (t textAt) bytes() bool { return !t.name && slices.Contains([]string{"data", "blob"}, t.member()) }

// decoded gives the texts that the gateway reads the bytes as.
func (t textAt) decoded() (said []string) {
	if t.bytes() {
		alone := slices.Concat([]byte(`{"contents":[{"blob":`), wire.Quote(t.text), []byte("}]}"))
		inAnswer(alone, func(text string) (string, []string) {
			said = append(said, text)
			return text, nil
		})
	}
	return said
}
