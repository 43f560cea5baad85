package guards

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
	"github.com/google/go-cmp/cmp"
)

// readAll returns the arguments of calls. Calls are separated by spaces; "-" is a call without arguments.
func readAll(t *testing.T, calls string) (all []callArguments) {
	t.Helper()
	for call := range strings.FieldsSeq(calls) {
		subject := `{"arguments":` + call + `}`
		if call == "-" {
			subject = `{}`
		}
		arguments, ok := readCallArguments([]byte(subject))
		if !ok {
			t.Fatalf("%s cannot be compared", call)
		}
		all = append(all, arguments)
	}
	return all
}

func TestArgumentPatterns(t *testing.T) {
	for _, tt := range []struct {
		name, waiting string
		text          string
		allowed       string
		refused       string
	}{
		{"constant and varying", `{"o":"x","t":1} {"o":"x","t":2}`, "any value of t; o must be the same",
			`{"o":"x","t":3} {"t":[{}],"o":"x"} {"o":"x","t":null}`,
			`{"o":"y","t":1} {"o":"x"} {"t":1} {"o":"x","t":1,"more":1} - {}`},
		{"one call", `{"a":1,"b":"x"}`, "a, b must be the same", `{"b":"x","a":1}`, `{"a":2,"b":"x"} {"a":1}`},
		{"all vary", `{"a":1} {"a":2}`, "any value of a", `{"a":3}`, `{"b":1} {} {"a":1,"b":1}`},
		{"no arguments", `- {}`, "no arguments", `- {}`, `{"a":1} {"":null}`},
		{"missing arguments", `{"a":1,"b":1} {"a":1}`, "any value or none of b; a must be the same",
			`{"a":1} {"a":1,"b":9}`, `{"b":1} {"a":2} {"a":1,"c":1}`},
		{"values that come back", `{"a":1} {"a":2} {"a":1}`, "any value of a", `{"a":7}`, `{}`},
		{"nested values", `{"o":{"k":[1,{"x":"y"}]},"t":1} {"o":{"k":[1,{"x":"y"}]},"t":2}`,
			"any value of t; o must be the same", `{"o":{"k":[1,{"x":"y"}]},"t":0}`,
			`{"o":{"k":[1,{"x":"z"}]},"t":0} {"o":{"k":[1]},"t":0} {"o":{"k":[1,{"x":"y"}],"k":1},"t":0}`},
		{"nested names in another order", `{"o":{"a":1,"b":2}}`, "o must be the same", `{"o":{"a":1,"b":2}}`,
			`{"o":{"b":2,"a":1}}`},
		{"numbers of another spelling", `{"n":1}`, "n must be the same", `{"n":1}`, `{"n":1.0} {"n":1e0} {"n":"1"} {"n":10}`},
		{"large numbers", `{"n":9007199254740993}`, "n must be the same", `{"n":9007199254740993}`, `{"n":9007199254740992}`},
		{"strings of another spelling", `{"s":"a"}`, "s must be the same", `{"s":"a"}`, `{"s":"\u0061"} {"s":"A"}`},
		{"names of another spelling", `{"ab":1}`, "ab must be the same", `{"ab":1} {"\u0061b":1}`, `{"AB":1} {"a_b":1}`},
		{"null is not absent", `{"a":null}`, "a must be the same", `{"a":null}`, `{} {"a":0}`},
		{"names that are not words", `{"a,b":1,"x;y":1} {"a,b":2,"x;y":1}`, `any value of "a,b"; "x;y" must be the same`,
			`{"a,b":1,"x;y":1}`, `{"a":1,"b":1,"x;y":1}`},
	} {
		p := newArgumentPattern("s", readAll(t, tt.waiting))
		if diff := cmp.Diff(tt.text, p.String()); diff != "" {
			t.Errorf("%s: text (-want +got):\n%s", tt.name, diff)
		}
		for _, call := range readAll(t, tt.waiting) {
			if !p.covers("s", call) {
				t.Errorf("%s: %s waited, and is not covered", tt.name, call)
			}
		}
		for want, calls := range map[bool]string{true: tt.allowed, false: tt.refused} {
			for call := range strings.FieldsSeq(calls) {
				subject := `{"arguments":` + call + `}`
				if call == "-" {
					subject = `{}`
				}
				arguments, ok := readCallArguments([]byte(subject))
				if !ok {
					t.Errorf("%s: %s cannot be compared", tt.name, call)
				}
				if got := p.covers("s", arguments); got != want {
					t.Errorf("%s: %s is covered: %v", tt.name, call, got)
				}
			}
		}
	}
}

// TestArgumentsThatCannotBeCompared has calls that no pattern covers.
func TestArgumentsThatCannotBeCompared(t *testing.T) {
	for _, subject := range []string{
		`{"arguments":{"a":1,"a":1}}`, `{"arguments":{"a":1,"\u0061":1}}`, `{"arguments":[]}`, `{"arguments":null}`,
		`{"arguments":"x"}`, `{"arguments":{},"arguments":{}}`, `{"arguments":{},"inputResponses":{}}`, `{"task":{}}`,
		`{"arguments":{"\ud800":1}}`, `{"arguments":{"` + "\uFFFD" + `":1}}`, `{"Arguments":{}}`,
	} {
		if all, ok := readCallArguments([]byte(subject)); ok {
			t.Errorf("%s: %v", subject, all)
		}
	}
}

func TestVary(t *testing.T) {
	p := newArgumentPattern("s", readAll(t, `{"a":1,"b":1,"c":1} {"a":1,"b":1,"c":2}`))
	wider := p.Vary([]string{"b", "c", "none"})
	if got := wider.String(); got != "any value of b, c; a must be the same" {
		t.Error(got)
	}
	if got := p.String(); got != "any value of c; a, b must be the same" {
		t.Errorf("the pattern itself changed: %s", got)
	}
	for name, want := range map[string]bool{"a": true, "c": true, "none": false} {
		if p.Has(name) != want {
			t.Errorf("has %s: %v", name, !want)
		}
	}
}

// TestAPatternIsOfOneSubject: a hash that belongs to another script or tool is not the hash of the same value.
func TestAPatternIsOfOneSubject(t *testing.T) {
	calls := readAll(t, `{"a":1}`)
	if newArgumentPattern("s", calls).covers("other", calls[0]) {
		t.Error("the pattern covers a call of another script")
	}
}

// randomArguments returns arguments with few names and values, so that many calls agree in some of them.
func randomArguments(random *rand.Rand) map[string]string {
	all := map[string]string{}
	for _, name := range []string{"a", "b", "c"} {
		if value := random.IntN(8); value < 3 {
			all[name] = []string{"1", "1.0", `{"x":[]}`}[value]
		} else if value < 7 {
			all[name] = "1"
		}
	}
	return all
}

func encodeArguments(random *rand.Rand, arguments map[string]string) string {
	var members []string
	for name, value := range arguments { // in a random order
		members = append(members, fmt.Sprintf("%q:%s", name, value))
	}
	random.Shuffle(len(members), func(i, j int) { members[i], members[j] = members[j], members[i] })
	return "{" + strings.Join(members, ",") + "}"
}

// isLike reports whether a grant for the waiting calls covers a call. If all waiting calls have an argument with the same
// value, the call must have that value. If all of them have an argument, the call must have it. If none of them has an
// argument, the call must not have it.
func isLike(waiting []map[string]string, call map[string]string) bool {
	for _, name := range []string{"a", "b", "c"} {
		values, there := map[string]bool{}, 0
		for _, w := range waiting {
			if value, ok := w[name]; ok {
				values[value], there = true, there+1
			}
		}
		value, has := call[name]
		switch {
		case has && there == 0, !has && there == len(waiting):
			return false
		case there == len(waiting) && len(values) == 1 && !values[value]:
			return false
		}
	}
	return true
}

// TestNoCallOutsideOfAPattern compares patterns of random calls with the rule in the documentation.
func TestNoCallOutsideOfAPattern(t *testing.T) {
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 1))
	covered := 0
	for range 20_000 {
		waiting := make([]map[string]string, 1+random.IntN(3))
		var encoded []string
		for i := range waiting {
			waiting[i] = randomArguments(random)
			encoded = append(encoded, encodeArguments(random, waiting[i]))
		}
		p := newArgumentPattern("s", readAll(t, strings.Join(encoded, " ")))
		text, err := json.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		var stored ArgumentPattern
		if err := json.Unmarshal(text, &stored); err != nil {
			t.Fatal(err)
		}
		call := randomArguments(random)
		want := isLike(waiting, call)
		if got := stored.covers("s", readAll(t, encodeArguments(random, call))[0]); got != want {
			t.Fatalf("seed %d: %v waited; %v is covered: %v", seed, encoded, call, got)
		}
		if want {
			covered++
		}
	}
	if covered < 1000 {
		t.Errorf("only %d calls were covered", covered)
	}
}

// FuzzArgumentPattern has two calls, the first of which waits. The second is covered only if it has the same names and
// the same bytes in its values.
func FuzzArgumentPattern(f *testing.F) {
	f.Add(`{"a":1,"b":{"c":[]}}`, `{"b":{"c":[]},"a":1}`)
	f.Add(`{"a":1}`, `{"a":1.0}`)
	f.Add(`{"a":1,"a":2}`, `{"\u0061":2}`)
	f.Fuzz(func(t *testing.T, first, second string) {
		if strings.ContainsAny(first+second, " \t\r\n") || rawjson.Valid([]byte(first)) != nil ||
			rawjson.Valid([]byte(second)) != nil {
			return
		}
		one, ok := readCallArguments([]byte(`{"arguments":` + first + `}`))
		other, comparable := readCallArguments([]byte(`{"arguments":` + second + `}`))
		if !ok || !comparable {
			return
		}
		if newArgumentPattern("s", []callArguments{one}).covers("s", other) != cmp.Equal(one, other) {
			t.Errorf("%s waited, and %s is covered: %v", first, second, !cmp.Equal(one, other))
		}
	})
}
