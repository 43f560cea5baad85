package guards

import (
	"bytes"
	"encoding/json"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/internal/flow"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// RowLabels are the labels of the results of servers, as their rows say.
type RowLabels struct {
	rows atomic.Pointer[map[drawbridge.ServerID]rowLabel]
}

type rowLabel struct {
	trusted bool
	labels  []config.ToolLabel
}

// Update replaces the rows.
func (l *RowLabels) Update(rows []config.Server) {
	all := make(map[drawbridge.ServerID]rowLabel, len(rows))
	for id, row := range ActiveRows(rows) {
		all[id] = rowLabel{trusted: TrustLevel(row) == trusted, labels: row.Labels}
	}
	l.rows.Store(&all)
}

func (l *RowLabels) of(id drawbridge.ServerID) rowLabel {
	if rows := l.rows.Load(); rows != nil {
		return (*rows)[id]
	}
	return rowLabel{}
}

// trusted reports whether a person trusts a server.
func (l *RowLabels) trusted(id drawbridge.ServerID) bool { return l.of(id).trusted }

// maxForeignText is how much of a text is searched for signs of a mail or a comment.
const maxForeignText = 32 << 10

// foreignTool, foreignPart and foreignText find tools, JSON and texts that bring what others have written, such as
// mails and comments.
var (
	foreignTool = regexp.MustCompile(`(?i)mail|inbox|message|comment|chat|review|feedback|ticket|issue|thread|post`)
	foreignPart = regexp.MustCompile(`(?i)"(\w+_)?(mails?|comments?|reviews?|feedback|reply|replies|reply_?to|subject|` +
		`body)\\?"\s*:|"messages?\\?"\s*:\s*[\[{]`)
	foreignText = regexp.MustCompile(`(?i)(^|\\n|[\s"(>.,;])(from|to|subject|reply-to|e-?mail|mail|message|comment|review|feedback|reply|wrote|said)( (of|by|from) [^:\n]{1,60})?: `)
)

// foreignWords are in all that foreignPart finds, so that most texts need no search with it.
var foreignWords = []string{"ail", "omment", "eview", "eedback", "epl", "ubject", "ody", "essage"}

func hasForeignPart(text []byte) bool {
	stands := func(word string) bool { return bytes.Contains(text, []byte(word)) }
	return slices.ContainsFunc(foreignWords, stands) && foreignPart.Match(text)
}

// Of returns the label of a text that a tool of a server has returned. It is untrusted if the server is not trusted, or
// if the text looks like a mail or a comment, which the server only passes on. The row can label the tool as trusted.
func (l *RowLabels) Of(id drawbridge.ServerID, tool string, text json.RawMessage) flow.Label {
	row := l.of(id)
	label := flow.Label{Integrity: flow.Untrusted, Confidentiality: flow.Internal}
	if row.trusted {
		label.Integrity = flow.Trusted
	}
	said := false
	for _, of := range row.labels {
		if ok, err := path.Match(of.Tools, tool); !ok || err != nil {
			continue
		}
		for _, word := range of.Words {
			if l, err := label.With(word); err == nil { // the configuration has no other words
				l.Integrity = min(l.Integrity, label.Integrity)
				label, said = l, said || word == flow.Trusted.String()
			}
		}
	}
	if !said && label.Integrity == flow.Trusted && (foreignTool.MatchString(tool) || hasForeignPart(text) ||
		bytes.Contains(text, []byte(": ")) && foreignText.Match(text)) {
		label.Integrity = flow.Untrusted
	}
	return label
}

// withAnnotations returns a label, lowered by what a server says about its result. It never raises the label. The
// member is that of the experimental extension io.modelcontextprotocol/trust-annotations.
func withAnnotations(label flow.Label, result []byte) flow.Label {
	if !bytes.Contains(result, []byte(TrustAnnotations)) {
		return label
	}
	said := rawjson.Get(result, "_meta", TrustAnnotations)
	if string(rawjson.Get(said, "untrusted")) == "true" {
		label = label.Join(flow.Label{Integrity: flow.Untrusted})
	}
	if string(rawjson.Get(said, "sensitive")) == "true" {
		label = label.Join(flow.Label{Integrity: flow.Trusted, Confidentiality: flow.Private})
	}
	return label
}

// annotated returns a result with its label in its _meta, beside what the server says.
func annotated(result json.RawMessage, label flow.Label) json.RawMessage {
	var edits []rawjson.Edit
	if label.Integrity < flow.Trusted {
		edits = append(edits, rawjson.Put(json.RawMessage("true"), "_meta", TrustAnnotations, "untrusted"))
	}
	if label.Confidentiality == flow.Private {
		edits = append(edits, rawjson.Put(json.RawMessage("true"), "_meta", TrustAnnotations, "sensitive"))
	}
	return rawjson.Apply(result, edits...)
}

// TrustAnnotations is the member of a result's _meta with the annotations of the experimental MCP extension.
const TrustAnnotations = "io.modelcontextprotocol/trust-annotations"

// PageLabel returns the label of a page by its names, if the settings say that it is private.
func (g *FlowGuard) PageLabel(names ...string) flow.Label {
	for _, name := range names {
		if matchesGlob(g.o.PrivatePages, name) {
			return flow.Label{Integrity: flow.Trusted, Confidentiality: flow.Private}
		}
	}
	return flow.Clean
}

// matchesGlob reports whether one of the globs matches a name, or for a glob with a slash as many parts at the end of a
// path. The globs are in lower case, and the case of the name does not count.
func matchesGlob(globs []string, name string) bool {
	name = strings.ToLower(name)
	return slices.ContainsFunc(globs, func(glob string) bool {
		end := len(name)
		for range strings.Count(glob, "/") + 1 {
			end = strings.LastIndexByte(name[:max(end, 0)], '/')
		}
		ok, err := path.Match(glob, name[end+1:])
		return ok && err == nil
	})
}
