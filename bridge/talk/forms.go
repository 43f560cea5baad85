package talk

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
	"github.com/drawbridge-mcp/drawbridge/shield"
	"github.com/drawbridge-mcp/drawbridge/wire"
)

// Rules say what servers may put before people. The zero value is for use.
type Rules struct {
	// Enabled lets servers ask whose rows do not say; nil lets them ask outside clients, and not through a model of our own.
	Enabled *bool
	// Timeout is how long a form waits for a person; 0 is 2 minutes. Capacity is how many questions of one server wait for
	// one person at once; 0 is 16. What is too much, or too late, is declined in the person's place.
	Timeout  time.Duration
	Capacity int
	// Look gives a question of a server, an elicitation or a sampling, as the person or the model behind the caller may be shown
	// it. Nil takes out of an elicitation what cannot be seen in it, and leaves a sampling as it is.
	Look func(server drawbridge.ServerID, method string, params json.RawMessage) json.RawMessage
	// Unmarked has nobody told which fields sound like secrets.
	Unmarked bool
}

// Defaults of Rules.
const (
	defaultFormTimeout = 2 * time.Minute
	defaultCapacity    = 16
)

// Bars says why a server may not ask the person behind a caller, and which setting would let it; empty where it may.
func (r Rules) Bars(row config.Server, caller drawbridge.Caller) string {
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

// A Desk passes the questions of one server on to people, as many at once as they may be. The zero value is for use.
type Desk struct {
	mu   sync.Mutex
	open map[string]int // by principal; none is 0
}

// Ask asks a caller, who is the principal's, what its server wants to know. A form that nobody has room or time for is declined, or called off; so is
// a page that is no web page. Nobody here looks at answers, or visits pages. A nil desk passes everything on.
func (d *Desk) Ask(ctx context.Context, r Rules, principal string, peer drawbridge.Peer, method string, params json.RawMessage) (json.RawMessage, error) {
	if d == nil || method != wire.MethodElicitation {
		return peer.Ask(ctx, method, params)
	}
	if strayPage(params) || !d.enter(principal, cmp.Or(r.Capacity, defaultCapacity)) {
		return json.RawMessage(`{"action":"decline"}`), nil
	}
	defer d.leave(principal)
	bounded, cancel := ctx, context.CancelFunc(func() {})
	if wire.GetText(params, "mode") != "url" { // who was sent to a page comes back when they are done there
		bounded, cancel = context.WithTimeout(ctx, cmp.Or(r.Timeout, defaultFormTimeout))
	}
	defer cancel()
	answer, err := peer.Ask(bounded, method, params)
	if err != nil && bounded.Err() != nil && ctx.Err() == nil {
		return json.RawMessage(`{"action":"cancel"}`), nil
	}
	return answer, err
}

func (d *Desk) enter(principal string, most int) bool {
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

func (d *Desk) leave(principal string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.open[principal]--; d.open[principal] == 0 {
		delete(d.open, principal)
	}
}

// What we add to the "_meta" of an elicitation, beside MetaServer: the names of fields that sound like secrets, as a list, and
// the origin of the page that a person is sent to.
const (
	MetaSensitive = "drawbridge/sensitive"
	MetaOrigin    = "drawbridge/origin"
)

// marked gives an elicitation as a person may be shown it, and with what they should look at. Names and values of fields stay as
// they are: answers refer to them.
func (r Rules) marked(id drawbridge.ServerID, params json.RawMessage) json.RawMessage {
	origin, names := originOf(params), sensitive(params)
	if r.Look != nil {
		params = r.Look(id, wire.MethodElicitation, params)
	} else {
		params = cleared(params)
	}
	if origin != "" {
		params = wire.Apply(params, wire.Put(wire.Quote(origin), "_meta", MetaOrigin))
	}
	if len(names) > 0 && !r.Unmarked {
		params = wire.Apply(params, wire.Put(wire.AppendTexts(nil, names...), "_meta", MetaSensitive))
	}
	return params
}

// cleared gives an elicitation without what cannot be seen in its texts.
func cleared(params json.RawMessage) json.RawMessage {
	return wire.EachValue(params, func(m wire.Member) json.RawMessage {
		switch {
		case m.Is("message"):
			return seen(m.Value)
		case m.Is("requestedSchema"):
			return seenIn(m.Value)
		}
		return m.Value
	})
}

// seenIn cleans the titles and descriptions of a schema, at every depth.
func seenIn(schema json.RawMessage) json.RawMessage {
	return wire.EachValue(schema, func(m wire.Member) json.RawMessage {
		switch {
		case len(m.Value) > 0 && m.Value[0] == '{':
			return seenIn(m.Value)
		case m.Is("oneOf"), m.Is("anyOf"), m.Is("items"):
			return wire.EachElement(m.Value, seenIn)
		case m.Is("enumNames"):
			return wire.EachElement(m.Value, seen)
		case m.Is("title"), m.Is("description"):
			return seen(m.Value)
		}
		return m.Value
	})
}

// seen gives a JSON text without the characters that cannot be seen; an honest one to the byte.
func seen(value json.RawMessage) json.RawMessage {
	text, ok := wire.Text(value)
	if !ok {
		return value
	}
	clean := strings.Map(func(r rune) rune {
		switch {
		case r == '\n', r == '\t', r == '\u200c', r == '\u200d', r == '\ufe0f': // scripts and pictures need the joiners
			return r
		case unicode.In(r, unicode.Cc, unicode.Cf, unicode.Co, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point):
			return -1
		}
		return r
	}, text)
	if clean == text {
		return value
	}
	return wire.Quote(clean)
}

// twofold says whether two readers could take one of these members of an object for two things: it is there twice, or another
// has a name that some read as its.
func twofold(object json.RawMessage, names ...string) bool {
	seen := make([]bool, len(names))
	for m := range wire.Members(object) {
		for i, name := range names {
			if m.Resembles(name) || m.Is(name) && seen[i] {
				return true
			}
			seen[i] = seen[i] || m.Is(name)
		}
	}
	return false
}

// page gives the address that an elicitation sends a person to. Whether there is a mode of that name some clients do not ask.
func page(params json.RawMessage) (address *url.URL, byURL bool) {
	if wire.GetText(params, "mode") != "url" && wire.Get(params, "url") == nil {
		return nil, false
	}
	address, err := url.Parse(wire.GetText(params, "url"))
	if err != nil {
		return nil, true
	}
	return address, true
}

// strayPage says whether an elicitation sends a person to what is no page of the web: a file, a script, another program; or may
// send them there, by how some read it.
func strayPage(params json.RawMessage) bool {
	address, byURL := page(params)
	return twofold(params, "mode", "url", "message", "requestedSchema") || byURL && hostOf(address) == ""
}

// hostOf gives the host of a page of the web in ASCII, with its port; "" for any other address, and for a host that a person can not see
// as it is.
func hostOf(address *url.URL) string {
	if address == nil || address.Scheme != "http" && address.Scheme != "https" || address.Host == "" {
		return ""
	}
	host, ok := shield.Host(address.Hostname())
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

// originOf is where that page is, without what stands before an "@" to look like it, and in letters of which none looks like another.
func originOf(params json.RawMessage) string {
	if address, byURL := page(params); byURL && !strayPage(params) {
		return address.Scheme + "://" + hostOf(address)
	}
	return ""
}

// Unanswered is the error by which a server hears that its question has no answer.
func Unanswered(err error) json.RawMessage {
	f := drawbridge.AsFault(err)
	if f.Raw != nil {
		return f.Raw
	}
	code := wire.CodeInternal
	if f.Code == drawbridge.NotFound {
		code = wire.CodeMethodNotFound
	}
	return wire.ErrorObject(code, f.Error(), nil)
}
