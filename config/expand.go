package config

import "strings"

// expand puts variables in the places of ${NAME} and ${NAME:-default}. A variable that is set wins, even when it is
// empty. A reference without a value stays as it is written, and so does one of another form, such as ${input:token};
// missing is told what stands between its braces. What was put in is not looked at again. $${ is ${ itself, and
// ${:-text} is text that means nothing further.
func expand(s string, lookup func(string) (string, bool), missing func(string)) string {
	var b strings.Builder
	for {
		before, rest, found := strings.Cut(s, "${")
		if plain, escaped := strings.CutSuffix(before, "$"); found && escaped {
			b.WriteString(plain + "${")
			s = rest
			continue
		}
		inner, after, closed := strings.Cut(rest, "}")
		if !found || !closed {
			b.WriteString(s)
			return b.String()
		}
		b.WriteString(before)
		value, ok := resolve(inner, lookup)
		if !ok {
			value = "${" + inner + "}"
			missing(inner)
		}
		b.WriteString(value)
		s = after
	}
}

// resolve gives the value of what stands between the braces. A name holds no colon.
func resolve(inner string, lookup func(string) (string, bool)) (string, bool) {
	name, def, hasDefault := strings.Cut(inner, ":-")
	if name == "" {
		return def, hasDefault
	}
	if strings.Contains(name, ":") {
		return "", false
	}
	if value, ok := lookup(name); ok {
		return value, true
	}
	return def, hasDefault
}
