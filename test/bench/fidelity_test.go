//go:build bench

package bench

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"reflect"
	"strings"
	"testing"
)

// fidelity counts what is lost on the way: each probe asks a server by hand directly and through Drawbridge, and is the
// same where nothing but members of "_meta" was added. Names and addresses may have another form.
func fidelity(t *testing.T) []line {
	direct := &prober{client: openByHand(t, role(t, "byhand"))}
	row := onStdio("hand", self(t))
	row.Env[roleVariable] = "byhand"
	config, store := configure(t, row)
	pipe := &prober{client: openByHand(t, serve(config, store)), prefix: "hand__"}
	config, store = configure(t, row)
	web := connect(t, start(t, serve(config, store, "--http", "127.0.0.1:0")).url(t))
	if err := web.open(); err != nil {
		t.Fatal(err)
	}
	var table []line
	for _, way := range []struct {
		name   string
		prober *prober
	}{{"stdio", pipe}, {"HTTP", &prober{client: web, prefix: "hand__"}}} {
		mounted(t, way.prober.client, toolCall("hand__markup", `{}`, "<b>").legacy())
		probes := direct.probes()
		same := 0
		for i, probe := range way.prober.probes() {
			lost := differences("", probes[i].value, probe.value)
			if err := errors.Join(probe.err, probes[i].err); err != nil {
				lost = append(lost, err.Error())
			}
			if len(lost) == 0 {
				same++
				continue
			}
			t.Logf("%s: %s: %s", way.name, probe.name, strings.Join(lost, "; "))
		}
		table = append(table, line{what: "probes that come as they were, legacy client over " + way.name,
			subject: fmt.Sprintf("%d the same", same), control: fmt.Sprintf("%d probes", len(probes)), value: float64(same),
			bar: float64(len(probes)), least: true, format: "%.0f"})
	}
	return table
}

// openByHand opens a legacy session with a process on its pipes.
func openByHand(t *testing.T, cmd *exec.Cmd) client {
	t.Helper()
	p := start(t, cmd)
	c := &stdioClient{in: p.in, out: p.out}
	if err := c.open(`{}`); err != nil {
		t.Fatal(err)
	}
	return c
}

// A probe is what a way answered to one question, decoded, with numbers as they were written.
type probe struct {
	name  string
	value any
	err   error
}

// A prober asks questions on one way, where names have a prefix.
type prober struct {
	client client
	prefix string
}

// ask returns the result of a request.
func (p *prober) ask(method, params string) (any, error) {
	answer, err := p.client.call(request{method: method, body: []byte(`,"method":"` + method + `","params":` + params +
		`}`)})
	if err != nil && !errors.Is(err, errAnswer) { // a result that is an error is an answer too
		return nil, err
	}
	whole, err := decoded(message(answer))
	if err != nil {
		return nil, err
	}
	object, _ := whole.(map[string]any)
	result, ok := object["result"]
	if !ok {
		return nil, fmt.Errorf("%s: %.200s", method, answer)
	}
	return result, nil
}

func decoded(text []byte) (value any, err error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	err = d.Decode(&value)
	return value, err
}

// probes asks everything.
func (p *prober) probes() []probe {
	var all []probe
	for _, call := range handCalls {
		value, err := p.ask("tools/call", `{"name":"`+p.prefix+call[0]+`","arguments":{}}`)
		all = append(all, probe{"result " + call[0], value, err})
	}
	reflected := func(name, member, params string) {
		value, err := p.ask("tools/call", `{"name":"`+p.prefix+`reflect",`+params+`}`)
		if err == nil {
			value, err = mirrored(value, member)
		}
		all = append(all, probe{name, value, err})
	}
	reflected("arguments", "arguments", `"arguments":{"big":9007199254740995,"f":2.50,"e":1e400,"html":"<b>&\u2029",`+
		`"nul":null,"deep":{"x":[{"y":[]}]}}`)
	reflected("members of a request", "own-member", `"arguments":{},"own-member":{"k":9007199254740995}`)
	for _, list := range []struct{ method, member string }{{"tools/list", "tools"}, {"resources/list", "resources"},
		{"resources/templates/list", "resourceTemplates"}, {"prompts/list", "prompts"}} {
		value, err := p.ask(list.method, `{}`)
		for _, entry := range handmade(value, list.member) {
			all = append(all, probe{list.method, without(entry, "name", "uri", "uriTemplate"), err})
		}
	}
	resources, err := p.ask("resources/list", `{}`)
	for _, entry := range handmade(resources, "resources") {
		uri, _ := json.Marshal(entry["uri"])
		var read any
		if err == nil {
			read, err = p.ask("resources/read", `{"uri":`+string(uri)+`}`)
		}
		for _, one := range entries(read, "contents") {
			all = append(all, probe{"resources/read", without(one, "uri"), err})
		}
	}
	prompt, err := p.ask("prompts/get", `{"name":"`+p.prefix+`hello"}`)
	return append(all, probe{"prompts/get", prompt, err})
}

// mirrored is a member of the params that the server was given, which it answered with as a text.
func mirrored(result any, member string) (any, error) {
	for _, part := range entries(result, "content") {
		text, _ := part["text"].(string)
		params, err := decoded([]byte(text))
		object, _ := params.(map[string]any)
		return object[member], err
	}
	return nil, fmt.Errorf("no text in %v", result)
}

func entries(result any, member string) (all []map[string]any) {
	object, _ := result.(map[string]any)
	list, _ := object[member].([]any)
	for _, one := range list {
		if entry, ok := one.(map[string]any); ok {
			all = append(all, entry)
		}
	}
	return all
}

// handmade are the entries of a list that byHand has given a title.
func handmade(result any, member string) (own []map[string]any) {
	for _, entry := range entries(result, member) {
		if entry["title"] == "handmade" {
			own = append(own, entry)
		}
	}
	return own
}

func without(entry map[string]any, members ...string) map[string]any {
	for _, member := range members {
		delete(entry, member)
	}
	return entry
}

// differences lists what of a value is missing, different or new in another. What is new in "_meta" is not listed.
func differences(path string, want, got any) (all []string) {
	one, ok := want.(map[string]any)
	other, also := got.(map[string]any)
	if !ok || !also {
		if a, isList := want.([]any); isList {
			if b, isList := got.([]any); isList && len(a) == len(b) {
				for i := range a {
					all = append(all, differences(fmt.Sprintf("%s[%d]", path, i), a[i], b[i])...)
				}
				return all
			}
		}
		if !reflect.DeepEqual(want, got) {
			all = append(all, fmt.Sprintf("%s is %v, was %v", path, got, want))
		}
		return all
	}
	for name, value := range one {
		if _, there := other[name]; !there {
			all = append(all, path+"."+name+" is lost")
			continue
		}
		all = append(all, differences(path+"."+name, value, other[name])...)
	}
	for name := range other {
		if _, there := one[name]; !there && name != "_meta" && !strings.HasSuffix(path, "._meta") {
			all = append(all, path+"."+name+" is new")
		}
	}
	return all
}
