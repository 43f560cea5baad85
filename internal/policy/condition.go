package policy

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/drawbridge-mcp/drawbridge"
)

// MaxRegexpBytes is the maximum size of a regular expression in a rule.
const MaxRegexpBytes = 1024

// An argCondition is a compiled condition on an argument. A nil field is not a part of the condition.
type argCondition struct {
	name         string
	is, not      []allowedValue
	matches      *regexp.Regexp
	above, below *float64
	present      *bool
}

// An allowedValue is one value in a condition: a pattern for texts, or an exact value of another type.
type allowedValue struct {
	glob   globPattern
	isText bool
	exact  any // in the form that a jsonReader returns
}

func newArgCondition(c drawbridge.Condition) (argCondition, error) {
	out := argCondition{name: c.Name, above: c.Above, below: c.Below, present: c.Present}
	var err error
	if c.Name == "" {
		return out, errors.New("a condition names no argument")
	}
	if out.is, err = newAllowedValues(c.Is); err != nil {
		return out, fmt.Errorf("args.%s: %w", c.Name, err)
	}
	if out.not, err = newAllowedValues(c.Not); err != nil {
		return out, fmt.Errorf("args.%s: %w", c.Name, err)
	}
	if c.Matches != "" {
		if out.matches, err = newRegexp(c.Matches); err != nil {
			return out, fmt.Errorf("args.%s: %w", c.Name, err)
		}
	}
	if !out.looksAtValue() && c.Present == nil {
		return out, fmt.Errorf("args.%s asks nothing", c.Name)
	}
	return out, nil
}

func newAllowedValues(raw []json.RawMessage) (out []allowedValue, err error) {
	for _, r := range raw {
		var v allowedValue
		said, err := readOneMember(json.RawMessage(`{"v":`+string(r)+`}`), "v")
		if err != nil {
			return nil, errors.New("a value is not JSON")
		}
		switch x := said.(type) {
		case string:
			v.glob, v.isText = globPattern(x), true
		case bool, json.Number, nil:
			v.exact = x
		default:
			return nil, errors.New("a value must be a text, a number or a boolean")
		}
		out = append(out, v)
	}
	return out, nil
}

// newRegexp compiles a regular expression in RE2 syntax. Its evaluation takes time linear in the length of the text.
func newRegexp(text string) (*regexp.Regexp, error) {
	if len(text) > MaxRegexpBytes {
		return nil, fmt.Errorf("the regular expression has more than %d bytes", MaxRegexpBytes)
	}
	re, err := regexp.Compile(text)
	if err != nil {
		return nil, fmt.Errorf("the regular expression is wrong: %w", err)
	}
	return re, nil
}

// isMet reports whether the arguments meet the condition. loose is true for a rule that does not allow; isMet then also
// tries the values that lenient servers may read:
//
//   - A text that contains a number or a boolean is also that number or boolean.
//   - 1 and true are equal, and so are 0 and false.
//   - A list is also each of its elements, and a list on the path to the argument is searched.
//
// If loose is false and a list is on the path to the argument, the condition is not met. isMet returns an error if the
// argument is repeated.
func (c argCondition) isMet(in jsonObject, loose bool) (bool, error) {
	one, listed, err := findArgument(in, c.name)
	if err != nil || len(listed) > 0 && !loose {
		return false, err
	}
	return c.isMetByFound(one, loose) || slices.ContainsFunc(listed,
		func(f foundArgument) bool { return c.isMetByFound(f, loose) }), nil
}

// isMetByFound reports whether a found argument meets the condition.
func (c argCondition) isMetByFound(f foundArgument, loose bool) bool {
	if c.present != nil && *c.present != f.ok {
		return false
	}
	if !f.ok {
		return c.present != nil && !c.looksAtValue()
	}
	met := func(v any) bool { return c.isMetByValue(v, loose) }
	if met(f.v) || !loose || matchesAnyValue(c.not, f.v, false) {
		return met(f.v)
	}
	return slices.ContainsFunc(looseReadings(f.v), met)
}

// looksAtValue reports whether the condition uses the value of the argument, and not only its presence.
func (c argCondition) looksAtValue() bool {
	return c.is != nil || c.not != nil || c.matches != nil || c.above != nil || c.below != nil
}

// looseReadings returns the other values that a lenient server may read instead of v.
func looseReadings(v any) (all []any) {
	switch v := v.(type) {
	case []any:
		for _, item := range v {
			all = append(append(all, item), looseReadings(item)...)
		}
	case string:
		text := strings.TrimSpace(v)
		switch strings.ToLower(text) {
		case "true", "yes", "on", "1", "t", "y":
			all = append(all, true)
		case "false", "no", "off", "0", "f", "n":
			all = append(all, false)
		}
		if n, err := strconv.ParseUint(text, 0, 64); err == nil && strings.ContainsAny(text, "xXbBoO") {
			all = append(all, json.Number(strconv.FormatUint(n, 10)))
		}
		if _, err := strconv.ParseFloat(text, 64); err == nil || errors.Is(err, strconv.ErrRange) {
			all = append(all, json.Number(text))
		}
	case json.Number:
		switch canonicalDecimal(v) {
		case "1e0":
			all = append(all, true)
		case "0":
			all = append(all, false)
		}
	case bool:
		n := json.Number("0")
		if v {
			n = "1"
		}
		all = append(all, n)
	}
	return all
}

// isMetByValue reports whether a value meets the condition without conversion. Parsers may round two numbers beyond
// 2^53 to the same value. Whether such numbers count as equal depends on loose. If loose is false, they are different
// for is and equal for not, so that a rule that allows matches fewer calls. If loose is true, they are equal for is and
// different for not.
func (c argCondition) isMetByValue(v any, loose bool) bool {
	if c.is != nil && !matchesAnyValue(c.is, v, loose) || c.not != nil && matchesAnyValue(c.not, v, !loose) {
		return false
	}
	if c.matches != nil {
		if text, ok := v.(string); !ok || !c.matches.MatchString(text) {
			return false
		}
	}
	return c.isWithinBounds(v)
}

// isWithinBounds reports whether a value is within the bounds of the condition. If the condition has no bounds, it
// returns true for every value. Otherwise it returns false for a value that is not a number. A number that is too large
// for a float64 counts as infinite.
func (c argCondition) isWithinBounds(v any) bool {
	if c.above == nil && c.below == nil {
		return true
	}
	n, ok := v.(json.Number)
	if !ok {
		return false
	}
	f, err := n.Float64()
	return (err == nil || errors.Is(err, strconv.ErrRange)) && (c.above == nil || f > *c.above) &&
		(c.below == nil || f < *c.below)
}

func matchesAnyValue(values []allowedValue, v any, rounded bool) bool {
	return slices.ContainsFunc(values, func(want allowedValue) bool { return want.matchesValue(v, rounded) })
}

func (want allowedValue) matchesValue(v any, rounded bool) bool {
	if text, ok := v.(string); ok {
		return want.isText && want.glob.match(text)
	}
	if want.isText {
		return false
	}
	a, isNumber := want.exact.(json.Number)
	b, ok := v.(json.Number)
	if !isNumber || !ok {
		return want.exact == v
	}
	if a == b || canonicalDecimal(a) == canonicalDecimal(b) {
		return true
	}
	x, errX := a.Float64()
	y, errY := b.Float64()
	return rounded && errX == nil && errY == nil && x == y
}

// canonicalDecimal returns the same text for all spellings of a number: the digits and the power of ten. If n is not a
// decimal number or has an extreme exponent, it returns n unchanged.
func canonicalDecimal(n json.Number) string {
	text, sign := string(n), ""
	if rest, ok := strings.CutPrefix(text, "-"); ok {
		text, sign = rest, "-"
	}
	digits, power, _ := strings.Cut(strings.ToLower(text), "e")
	exponent, err := strconv.Atoi(cmp.Or(power, "0"))
	whole, part, _ := strings.Cut(digits, ".")
	if digits = strings.TrimLeft(whole+part, "0"); err != nil || strings.Trim(digits, "0123456789") != "" {
		return string(n)
	}
	if digits == "" {
		return "0"
	}
	exponent -= len(part)
	short := strings.TrimRight(digits, "0")
	return sign + short + "e" + strconv.Itoa(exponent+len(digits)-len(short))
}
