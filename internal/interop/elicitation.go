package interop

import (
	"cmp"
	"context"
	"encoding/json"
	"net/url"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
	"github.com/drawbridge-mcp/drawbridge/internal/shield"
)

// ElicitationRules decide which questions servers may ask people. The zero value works.
type ElicitationRules struct {
	// Enabled is the default for servers whose rows do not decide; nil allows external clients and refuses our own
	// agents.
	Enabled *bool
	// Timeout is how long a form waits for a person; 0 is 2 minutes. Capacity is how many questions of one server wait
	// for one person at once; 0 is 16. Beyond either, the question is declined or cancelled.
	Timeout  time.Duration
	Capacity int
	// Inspect returns a server's elicitation or sampling as the person or model may be shown it. If nil, invisible
	// characters are removed from elicitations, and sampling stays as it is.
	Inspect func(server drawbridge.ServerID, method string, params json.RawMessage) json.RawMessage
	// NoSensitiveMarks turns off the marking of fields that seem to ask for secrets.
	NoSensitiveMarks bool
}

// Defaults of ElicitationRules.
const (
	defaultFormTimeout  = 2 * time.Minute
	defaultFormCapacity = 16
)

// BlockReason returns why a server may not ask the person behind a caller, and which setting would allow it; "" if it
// may.
func (r ElicitationRules) BlockReason(row config.Server, caller drawbridge.Caller) string {
	said := row.ElicitationEnabled
	switch {
	case row.Trust == "sandboxed":
		return `trust = "sandboxed" declines: trust = "untrusted" would allow it`
	case said != nil && !*said:
		return "elicitation_enabled = false declines: true in its row would allow it"
	case said != nil, r.Enabled != nil && *r.Enabled:
		return ""
	case r.Enabled != nil:
		return "elicitation_enabled = false in [mcp] declines: elicitation_enabled = true in its row would allow it"
	case caller.Kind == drawbridge.Agent:
		return "a session declines: elicitation_enabled = true in its row would allow it"
	}
	return ""
}

// An ElicitationQueue passes the questions of one server to people, as many at once as the rules allow. The zero value
// is empty.
type ElicitationQueue struct {
	mu   sync.Mutex
	open map[string]int // by principal
}

// AskUser sends a server's request to a caller and returns the answer. A form beyond the capacity is declined, one
// beyond the timeout cancelled; a URL that is not a web page is declined. Answers are not inspected, and pages not
// opened. A nil queue passes everything on.
func (d *ElicitationQueue) AskUser(ctx context.Context, r ElicitationRules, principal string, peer drawbridge.Peer,
	method string, params json.RawMessage) (json.RawMessage, error) {
	if d == nil || method != mcp.MethodElicitation {
		return peer.Request(ctx, method, params)
	}
	if hasUnsafeURL(params) || !d.acquire(principal, cmp.Or(r.Capacity, defaultFormCapacity)) {
		return json.RawMessage(`{"action":"decline"}`), nil
	}
	defer d.release(principal)
	bounded, cancel := ctx, context.CancelFunc(func() {})
	if rawjson.GetString(params, "mode") != "url" { // a person on a web page takes as long as needed
		bounded, cancel = context.WithTimeout(ctx, cmp.Or(r.Timeout, defaultFormTimeout))
	}
	defer cancel()
	answer, err := peer.Request(bounded, method, params)
	if err != nil && bounded.Err() != nil && ctx.Err() == nil {
		return json.RawMessage(`{"action":"cancel"}`), nil
	}
	return answer, err
}

func (d *ElicitationQueue) acquire(principal string, most int) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.open[principal] >= most {
		return false
	}
	if d.open == nil {
		d.open = map[string]int{}
	}
	d.open[principal]++
	return true
}

func (d *ElicitationQueue) release(principal string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.open[principal]--; d.open[principal] == 0 {
		delete(d.open, principal)
	}
}

// Members that Drawbridge adds to the _meta of an elicitation, beside MetaServer: the names of fields that seem to ask
// for secrets, as a list, and the origin of the page.
const (
	MetaSensitive = "drawbridge/sensitive"
	MetaOrigin    = "drawbridge/origin"
)

// annotate returns an elicitation as a person may be shown it, with marks. Names and values of fields stay as they are:
// answers refer to them.
func (r ElicitationRules) annotate(id drawbridge.ServerID, params json.RawMessage) json.RawMessage {
	origin, names := elicitationOrigin(params), sensitiveFields(params)
	if r.Inspect != nil {
		params = r.Inspect(id, mcp.MethodElicitation, params)
	} else {
		params = stripInvisible(params)
	}
	if origin != "" {
		params = rawjson.Apply(params, rawjson.Put(rawjson.Quote(origin), "_meta", MetaOrigin))
	}
	if len(names) > 0 && !r.NoSensitiveMarks {
		params = rawjson.Apply(params, rawjson.Put(rawjson.AppendStrings(nil, names...), "_meta", MetaSensitive))
	}
	return params
}

// stripInvisible returns an elicitation without invisible characters in its texts.
func stripInvisible(params json.RawMessage) json.RawMessage {
	return rawjson.MapValues(params, func(m rawjson.Member) json.RawMessage {
		switch {
		case m.HasName("message"):
			return stripInvisibleText(m.Value)
		case m.HasName("requestedSchema"):
			return stripInvisibleInSchema(m.Value)
		}
		return m.Value
	})
}

// stripInvisibleInSchema cleans the titles and descriptions of a schema, at every depth.
func stripInvisibleInSchema(schema json.RawMessage) json.RawMessage {
	return rawjson.MapValues(schema, func(m rawjson.Member) json.RawMessage {
		switch {
		case len(m.Value) > 0 && m.Value[0] == '{':
			return stripInvisibleInSchema(m.Value)
		case m.HasName("oneOf"), m.HasName("anyOf"), m.HasName("items"):
			return rawjson.MapElements(m.Value, stripInvisibleInSchema)
		case m.HasName("enumNames"):
			return rawjson.MapElements(m.Value, stripInvisibleText)
		case m.HasName("title"), m.HasName("description"):
			return stripInvisibleText(m.Value)
		}
		return m.Value
	})
}

// stripInvisibleText returns a JSON string without invisible characters; a clean one stays byte for byte.
func stripInvisibleText(value json.RawMessage) json.RawMessage {
	text, ok := rawjson.DecodeString(value)
	if !ok {
		return value
	}
	clean := strings.Map(func(r rune) rune {
		switch {
		case r == '\n', r == '\t', r == '\u200c', r == '\u200d', r == '\ufe0f': // scripts and pictures need the joiners
			return r
		case unicode.In(r, unicode.Cc, unicode.Cf, unicode.Co, unicode.Variation_Selector,
			unicode.Other_Default_Ignorable_Code_Point):
			return -1
		}
		return r
	}, text)
	if clean == text {
		return value
	}
	return rawjson.Quote(clean)
}

// isAmbiguous reports whether two readers could read one of these members differently: it is repeated, or another
// member has a similar name.
func isAmbiguous(object json.RawMessage, names ...string) bool {
	seen := make([]bool, len(names))
	for m := range rawjson.Members(object) {
		for i, name := range names {
			if m.ResemblesName(name) || m.HasName(name) && seen[i] {
				return true
			}
			seen[i] = seen[i] || m.HasName(name)
		}
	}
	return false
}

// elicitationURL returns the address that an elicitation sends a person to. Some clients do not check the mode, so any
// url counts.
func elicitationURL(params json.RawMessage) (address *url.URL, byURL bool) {
	if rawjson.GetString(params, "mode") != "url" && rawjson.Get(params, "url") == nil {
		return nil, false
	}
	address, err := url.Parse(rawjson.GetString(params, "url"))
	if err != nil {
		return nil, true
	}
	return address, true
}

// hasUnsafeURL reports whether an elicitation sends a person, by any reading, to something that is not a web page: a
// file, a script, another program.
func hasUnsafeURL(params json.RawMessage) bool {
	address, byURL := elicitationURL(params)
	return isAmbiguous(params, "mode", "url", "message", "requestedSchema") || byURL && webHost(address) == ""
}

// webHost returns the host of a web page in ASCII, with its port. It returns "" for any other address, and for a host
// that looks different from what it is.
func webHost(address *url.URL) string {
	if address == nil || address.Scheme != "http" && address.Scheme != "https" || address.Host == "" {
		return ""
	}
	host, ok := shield.NormalizeHost(address.Hostname())
	switch {
	case !ok:
		return ""
	case host == address.Hostname():
		return address.Host
	case strings.HasPrefix(address.Host, "["): // no number has other letters
		return ""
	case address.Port() != "":
		return host + ":" + address.Port()
	}
	return host
}

// elicitationOrigin returns the origin of the page, without user info and in unambiguous letters; "" for none.
func elicitationOrigin(params json.RawMessage) string {
	if address, byURL := elicitationURL(params); byURL && !hasUnsafeURL(params) {
		return address.Scheme + "://" + webHost(address)
	}
	return ""
}

// ErrorForServer returns the JSON-RPC error that tells a server why its request has no answer.
func ErrorForServer(err error) json.RawMessage {
	f := drawbridge.AsFault(err)
	if f.Raw != nil {
		return f.Raw
	}
	code := mcp.CodeInternal
	if f.Code == drawbridge.NotFound {
		code = mcp.CodeMethodNotFound
	}
	return mcp.NewErrorObject(code, f.Error(), nil)
}
