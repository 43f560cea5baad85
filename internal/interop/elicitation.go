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

// ElicitationRules decide which questions servers may ask people. The zero value is ready to use.
type ElicitationRules struct {
	// Enabled decides for servers whose configuration does not set elicitation_enabled. Nil allows questions to
	// external clients and refuses questions to Drawbridge's own agents.
	Enabled *bool
	// Timeout is the time that a form waits for a person's answer; 0 means 2 minutes. After that time the server gets
	// the answer "cancel". Capacity is the maximum number of unanswered questions of one server to one person; 0 means
	// 16. Further questions get the answer "decline".
	Timeout  time.Duration
	Capacity int
	// Inspect returns the params of a server's elicitation or sampling request in the form that may be shown to the
	// person or the model. If it is nil, invisible characters are removed from elicitations, and sampling requests are
	// not changed.
	Inspect func(server drawbridge.ServerID, method string, params json.RawMessage) json.RawMessage
	// NoSensitiveMarks turns off the marking of form fields that seem to ask for secrets.
	NoSensitiveMarks bool
}

// Defaults of ElicitationRules.
const (
	defaultFormTimeout  = 2 * time.Minute
	defaultFormCapacity = 16
)

// BlockReason returns a text for people: why a server may not ask the person behind a caller, and which setting would
// allow it. It returns "" if the server may ask.
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
	case caller.OriginKind() == drawbridge.Agent:
		return "a session declines: elicitation_enabled = true in its row would allow it"
	}
	return ""
}

// An ElicitationQueue passes the questions of one server to people and limits the number of unanswered questions. The
// zero value is ready to use.
type ElicitationQueue struct {
	mu   sync.Mutex
	open map[string]int // number of open questions by principal
}

// AskUser sends a server's request to a caller and returns the answer. For an elicitation it returns the answer
// "decline" if the capacity is exceeded, or if the address to visit is not a web page. For a form without an answer it
// returns "cancel" at the timeout. Other requests, and all requests of a nil queue, are sent without these checks.
// AskUser does not inspect answers and does not open pages.
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
	if rawjson.GetString(params, "mode") != "url" { // a visit to a web page has no time limit
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

// Names of members that Drawbridge adds to the _meta of an elicitation, in addition to MetaServer. The value of
// MetaSensitive is the list of the form's fields that seem to ask for secrets. The value of MetaOrigin is the origin of
// the web page to visit.
const (
	MetaSensitive = "drawbridge/sensitive"
	MetaOrigin    = "drawbridge/origin"
)

// annotate returns the params of an elicitation in the form that may be shown to a person, with MetaSensitive and
// MetaOrigin. It does not change names and values of fields, because answers refer to them.
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

// stripInvisibleInSchema returns a schema without invisible characters in its titles and descriptions, at every depth.
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

// stripInvisibleText returns a JSON string without invisible characters. If there are none, it returns the same bytes.
func stripInvisibleText(value json.RawMessage) json.RawMessage {
	text, ok := rawjson.DecodeString(value)
	if !ok {
		return value
	}
	clean := strings.Map(func(r rune) rune {
		switch {
		case r == '\n', r == '\t', r == '\u200c', r == '\u200d', r == '\ufe0f': // scripts and emojis need the joiners
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

// isAmbiguous reports whether two parsers may read different values for one of the members names of an object. That is
// the case if the member is repeated, or if another member has a similar name, such as one that differs in case.
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

// elicitationURL returns the address of the page to which an elicitation sends a person; nil if the address is invalid.
// byURL reports whether the elicitation has an address. Some clients ignore the member mode, so an elicitation with a
// member url has an address in every mode.
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

// hasUnsafeURL reports whether an elicitation may send a person to an address that is not a web page, such as a file or
// a script. It also returns true for an elicitation that two parsers may read differently.
func hasUnsafeURL(params json.RawMessage) bool {
	address, byURL := elicitationURL(params)
	return isAmbiguous(params, "mode", "url", "message", "requestedSchema") || byURL && webHost(address) == ""
}

// webHost returns the host of a web page in ASCII, with its port. It returns "" for an address that is not a web page,
// and for a host with characters that imitate other characters or are invisible.
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
	case strings.HasPrefix(address.Host, "["): // an IPv6 address has no other letters
		return ""
	case address.Port() != "":
		return host + ":" + address.Port()
	}
	return host
}

// elicitationOrigin returns the origin of the page of an elicitation, in ASCII and without user info; "" if there is no
// safe address.
func elicitationOrigin(params json.RawMessage) string {
	if address, byURL := elicitationURL(params); byURL && !hasUnsafeURL(params) {
		return address.Scheme + "://" + webHost(address)
	}
	return ""
}

// ErrorForServer returns the JSON-RPC error object with which Drawbridge responds to a server's request. err is the
// error of that request.
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
