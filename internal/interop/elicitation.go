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

// ElicitationRules say what servers may put before people. The zero value is for use.
type ElicitationRules struct {
	// Enabled lets servers ask whose rows do not say; nil lets them ask outside clients, and not through a model of
	// our own.
	Enabled *bool
	// Timeout is how long a form waits for a person; 0 is 2 minutes. Capacity is how many questions of one server wait
	// for one person at once; 0 is 16. What is too much, or too late, is declined in the person's place.
	Timeout  time.Duration
	Capacity int
	// Inspect gives a question of a server, an elicitation or a sampling, as the person or the model behind the caller
	// may be shown it. Nil takes out of an elicitation what cannot be seen in it, and leaves a sampling as it is.
	Inspect func(server drawbridge.ServerID, method string, params json.RawMessage) json.RawMessage
	// NoSensitiveMarks has nobody told which fields sound like secrets.
	NoSensitiveMarks bool
}

// Defaults of Rules.
const (
	defaultFormTimeout  = 2 * time.Minute
	defaultFormCapacity = 16
)

// BlockReason says why a server may not ask the person behind a caller, and which setting would let it; empty where it
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

// A ElicitationQueue passes the questions of one server on to people, as many at once as they may be. The zero value
// is for use.
type ElicitationQueue struct {
	mu   sync.Mutex
	open map[string]int // by principal; none is 0
}

// AskUser asks a caller, who is the principal's, what its server wants to know. A form that nobody has room or time
// for is declined, or called off; so is a page that is no web page. Nobody here looks at answers, or visits pages. A
// nil desk passes everything on.
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
	if rawjson.GetString(params, "mode") != "url" { // who was sent to a page comes back when they are done there
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

// What we add to the "_meta" of an elicitation, beside MetaServer: the names of fields that sound like secrets, as a
// list, and the origin of the page that a person is sent to.
const (
	MetaSensitive = "drawbridge/sensitive"
	MetaOrigin    = "drawbridge/origin"
)

// annotate gives an elicitation as a person may be shown it, and with what they should look at. Names and values of
// fields stay as they are: answers refer to them.
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

// stripInvisible gives an elicitation without what cannot be seen in its texts.
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

// stripInvisibleText gives a JSON text without the characters that cannot be seen; an honest one to the byte.
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

// isAmbiguous says whether two readers could take one of these members of an object for two things: it is there twice,
// or another has a name that some read as its.
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

// elicitationURL gives the address that an elicitation sends a person to. Whether there is a mode of that name some
// clients do not ask.
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

// hasUnsafeURL says whether an elicitation sends a person to what is no page of the web: a file, a script, another
// program; or may send them there, by how some read it.
func hasUnsafeURL(params json.RawMessage) bool {
	address, byURL := elicitationURL(params)
	return isAmbiguous(params, "mode", "url", "message", "requestedSchema") || byURL && webHost(address) == ""
}

// webHost gives the host of a page of the web in ASCII, with its port; "" for any other address, and for a host that a
// person can not see as it is.
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

// elicitationOrigin is where that page is, without what stands before an "@" to look like it, and in letters of which
// none looks like another.
func elicitationOrigin(params json.RawMessage) string {
	if address, byURL := elicitationURL(params); byURL && !hasUnsafeURL(params) {
		return address.Scheme + "://" + webHost(address)
	}
	return ""
}

// ErrorForServer is the error by which a server hears that its question has no answer.
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
