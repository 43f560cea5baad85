package dialect

import (
	"bytes"
	"path"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"

	"github.com/drawbridge-mcp/drawbridge/config/doc"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
)

var (
	variable = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	// shouted is what people name variables. A value that looks like one is quoted; others are too seldom one to be made
	// ugly for it.
	shouted = regexp.MustCompile(`^[A-Z_][A-Z0-9_]*$`)

	inBraces  = regexp.MustCompile(`\$\{([^}]*)\}`)
	inCurly   = regexp.MustCompile(`\{(env|file):([^}]*)\}`)
	dollars   = regexp.MustCompile(`\$\{([^}]*)\}|\$([A-Za-z_][A-Za-z0-9_]*)`)
	percents  = regexp.MustCompile(`%([A-Za-z_][A-Za-z0-9_]{2,})%`)
	referring = regexp.MustCompile(`\$\{(?:env:|(?:file|keychain|command):[^-}])[^}]*\}`)
	// dollarsBefore finds dollars that stand before a placeholder.
	dollarsBefore = regexp.MustCompile(`(\$+)\$\{`)
	wholeCommand  = regexp.MustCompile(`(?s)^\$\((.*)\)$`)
)

// quote keeps a value from being taken for a command or for a variable's name.
func quote(s string) string {
	switch {
	case strings.HasPrefix(s, "!"):
		return "${:-!}" + s[1:]
	case shouted.MatchString(s):
		return "${:-" + s + "}"
	}
	return s
}

// literal is for programs that put nothing into texts.
func literal(_ *carrier, s string) string { return escape(s) }

// ours is for programs that know ${NAME} and ${NAME:-default} as we do. A dollar before them means itself to them, and so does
// what is a reference here.
func ours(c *carrier, s string) string {
	s = dollarsBefore.ReplaceAllString(s, "$${:-$1}$${")
	return referring.ReplaceAllStringFunc(s, func(placeholder string) string {
		c.strange(placeholder)
		return "$" + placeholder
	})
}

// rewrite says each match in our words, and keeps what is between them as it is.
func rewrite(s string, what *regexp.Regexp, say func(groups []string) string) string {
	var out []byte
	end := 0
	for _, m := range what.FindAllStringSubmatchIndex(s, -1) {
		groups := make([]string, 0, len(m)/2)
		for i := 0; i < len(m); i += 2 {
			group := ""
			if m[i] >= 0 {
				group = s[m[i]:m[i+1]]
			}
			groups = append(groups, group)
		}
		out = join(join(out, escape(s[end:m[0]])), say(groups))
		end = m[1]
	}
	return string(join(out, escape(s[end:])))
}

// join puts two texts of ours together, each of which means what it means alone.
func join(out []byte, s string) []byte {
	switch rest := bytes.TrimRight(out, "$"); {
	case len(rest) == len(out):
	case strings.HasPrefix(s, "{"): // the two would be a placeholder
		out = append(out, '$')
	case strings.HasPrefix(s, "${"): // the dollars would take its meaning away
		out = append(rest, "${:-"+string(out[len(rest):])+"}"...)
	}
	return append(out, s...)
}

func escape(s string) string { return strings.ReplaceAll(s, "${", "$${") }

// editor is for editors of the family of VS Code, which have ${env:NAME}, ${workspaceFolder} and their like.
func editor(c *carrier, s string) string {
	return rewrite(s, inBraces, func(groups []string) string {
		inner := groups[1]
		kind, name, _ := strings.Cut(inner, ":")
		switch {
		case kind == "env" && plainName(name):
			return "${" + name + "}"
		case kind == "input" && name != "":
			return c.input(name)
		case inner == "userHome":
			return "${" + homeVariable() + "}"
		case inner == "pathSeparator" || inner == "/":
			return string(filepath.Separator)
		case (inner == "workspaceFolder" || inner == "workspaceRoot") && c.dir != "":
			return escape(filepath.ToSlash(c.dir))
		case inner == "workspaceFolderBasename" && c.dir != "":
			return escape(path.Base(filepath.ToSlash(c.dir)))
		case variable.MatchString(inner) && !strings.HasPrefix(inner, "workspace") && inner != "cwd":
			return "${" + inner + "}"
		}
		c.strange(groups[0])
		return escape(groups[0])
	})
}

// plainName says whether a name, with or without a default, has no colon in it, which would make something else of it here.
func plainName(name string) bool {
	before, _, _ := strings.Cut(name, ":-")
	return name != "" && !strings.Contains(before, ":")
}

func homeVariable() string {
	if runtime.GOOS == "windows" {
		return "USERPROFILE"
	}
	return "HOME"
}

// strange notes a placeholder that stays as it is written. Its name is no secret, but a default in it may be one.
func (c *carrier) strange(placeholder string) {
	open, inner, _ := strings.Cut(placeholder, "{")
	shown := open + "{" + doc.Placeholder(strings.TrimSuffix(inner, "}")) + "}"
	if len(shown) > 60 {
		shown = "a placeholder"
	}
	c.note(c.from.Line, "%s in %q means nothing outside of %s, and stayed as it is", shown, c.current, c.tongue.title)
}

// input says what a person is asked for as a variable, with the default that the question has.
func (c *carrier) input(id string) string {
	name := strings.Map(func(r rune) rune {
		if r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '_'
	}, strings.ToUpper(id))
	if name == "" || name[0] >= '0' && name[0] <= '9' {
		name = "_" + name
	}
	c.note(c.from.Line, "%s asks a person for %s; here it is the variable %s", c.tongue.title, safetext.Quote(id), name)
	if def := c.inputs[id]; def != "" && !strings.ContainsAny(def, "${}") {
		return "${" + name + ":-" + def + "}"
	}
	return "${" + name + "}"
}

// curly is for opencode: {env:NAME} and {file:path}.
func curly(c *carrier, s string) string {
	return rewrite(s, inCurly, func(groups []string) string {
		if groups[1] == "env" && groups[2] != "" && !strings.Contains(groups[2], ":") {
			return "${" + groups[2] + "}"
		}
		c.strange(groups[0])
		return escape(groups[0])
	})
}

// dollar is for programs that know $NAME beside ${NAME}.
func dollar(c *carrier, s string) string {
	return rewrite(s, dollars, func(groups []string) string {
		name, def, hasDefault := strings.Cut(groups[1]+groups[2], ":-")
		switch {
		case !variable.MatchString(name):
			c.strange(groups[0])
			return escape(groups[0])
		case hasDefault:
			return "${" + name + ":-" + def + "}"
		}
		return "${" + name + "}"
	})
}

// dollarOrPercent is dollar with %NAME%. An address has percent signs of its own.
func dollarOrPercent(c *carrier, s string) string {
	s = dollar(c, s)
	if c.current == "url" || c.current == "httpUrl" {
		return s
	}
	return percents.ReplaceAllString(s, "$${$1}")
}

// shell is for values that a shell reads: of what a shell knows, variables are carried, and a value that is a command as
// a whole.
func shell(c *carrier, s string) string {
	inside := wholeCommand.FindStringSubmatch(s)
	if inside != nil && (c.current == "env" || c.current == "headers") && !strings.Contains(inside[1], "$(") {
		return "!" + strings.TrimSpace(inside[1])
	}
	if strings.Contains(s, "$(") || strings.Contains(s, "`") {
		c.note(c.from.Line, "a command in %q means nothing outside of %s, and stayed as it is", c.current, c.tongue.title)
	}
	return dollar(c, s)
}
