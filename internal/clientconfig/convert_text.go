package clientconfig

import (
	"bytes"
	"path"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"

	"github.com/drawbridge-mcp/drawbridge/internal/lazyregexp"

	"github.com/drawbridge-mcp/drawbridge/internal/configfile"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
)

var (
	variablePattern = lazyregexp.New(`^[A-Za-z_][A-Za-z0-9_]*$`)
	// upperCaseName matches a variable's name in upper case. quoteValue escapes a value of this form, so that it is not
	// read as a variable. A value in another form is rarely the name of a variable, and stays unescaped so that the
	// file is easy to read.
	upperCaseName = lazyregexp.New(`^[A-Z_][A-Z0-9_]*$`)

	bracePlaceholder = lazyregexp.New(`\$\{([^}]*)\}`)
	curlyPlaceholder = lazyregexp.New(`\{(env|file):([^}]*)\}`)
	dollarVariable   = lazyregexp.New(`\$\{([^}]*)\}|\$([A-Za-z_][A-Za-z0-9_]*)`)
	percentVariable  = lazyregexp.New(`%([A-Za-z_][A-Za-z0-9_]{2,})%`)
	nativeReference  = lazyregexp.New(`\$\{(?:env:|(?:file|keychain|command):[^-}])[^}]*\}`)
	// dollarsBeforeBrace matches the dollar signs before a placeholder.
	dollarsBeforeBrace = lazyregexp.New(`(\$+)\$\{`)
	wholeCommand       = lazyregexp.New(`(?s)^\$\((.*)\)$`)
)

// quoteValue returns the value escaped, so that Drawbridge does not read it as a command or as a variable's name.
func quoteValue(s string) string {
	switch {
	case strings.HasPrefix(s, "!"):
		return "${:-!}" + s[1:]
	case upperCaseName().MatchString(s):
		return "${:-" + s + "}"
	}
	return s
}

// literalText converts a string of a program that does not expand variables. It escapes each "${", which Drawbridge
// would expand.
func literalText(_ *rowConverter, s string) string { return escapePlaceholders(s) }

// nativeText converts a string of a program that expands ${NAME} and ${NAME:-default} as Drawbridge does. It escapes
// text that such a program does not interpret: dollar signs before a placeholder, and Drawbridge's other references.
func nativeText(c *rowConverter, s string) string {
	s = dollarsBeforeBrace().ReplaceAllString(s, "$${:-$1}$${")
	return nativeReference().ReplaceAllStringFunc(s, func(placeholder string) string {
		c.noteUnknownPlaceholder(placeholder)
		return "$" + placeholder
	})
}

// replaceMatches returns s with each match of the expression what replaced by the result of the function say. The text
// between the matches is escaped. The first element of groups is the match, followed by the expression's groups.
func replaceMatches(s string, what *regexp.Regexp, say func(groups []string) string) string {
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
		out = appendText(appendText(out, escapePlaceholders(s[end:m[0]])), say(groups))
		end = m[1]
	}
	return string(appendText(out, escapePlaceholders(s[end:])))
}

// appendText appends s to out; both are in Drawbridge's format. If out ends with dollar signs that would change the
// meaning of s, appendText inserts an escape.
func appendText(out []byte, s string) []byte {
	switch rest := bytes.TrimRight(out, "$"); {
	case len(rest) == len(out):
	case strings.HasPrefix(s, "{"): // together they would form a placeholder
		out = append(out, '$')
	case strings.HasPrefix(s, "${"): // the dollar signs would escape the placeholder
		out = append(rest, "${:-"+string(out[len(rest):])+"}"...)
	}
	return append(out, s...)
}

func escapePlaceholders(s string) string { return strings.ReplaceAll(s, "${", "$${") }

// editorText converts a string of VS Code or a related editor, with placeholders such as ${env:NAME} and
// ${workspaceFolder}.
func editorText(c *rowConverter, s string) string {
	return replaceMatches(s, bracePlaceholder(), func(groups []string) string {
		inner := groups[1]
		kind, name, _ := strings.Cut(inner, ":")
		switch {
		case kind == "env" && isPlainName(name):
			return "${" + name + "}"
		case kind == "input" && name != "":
			return c.promptVariable(name)
		case inner == "userHome":
			return "${" + homeVariableName() + "}"
		case inner == "pathSeparator" || inner == "/":
			return string(filepath.Separator)
		case (inner == "workspaceFolder" || inner == "workspaceRoot") && c.dir != "":
			return escapePlaceholders(filepath.ToSlash(c.dir))
		case inner == "workspaceFolderBasename" && c.dir != "":
			return escapePlaceholders(path.Base(filepath.ToSlash(c.dir)))
		case variablePattern().MatchString(inner) && !strings.HasPrefix(inner, "workspace") && inner != "cwd":
			return "${" + inner + "}"
		}
		c.noteUnknownPlaceholder(groups[0])
		return escapePlaceholders(groups[0])
	})
}

// isPlainName reports whether the name of a variable contains no colon; a default may follow the name. In Drawbridge's
// format, a colon in the name has another meaning.
func isPlainName(name string) bool {
	before, _, _ := strings.Cut(name, ":-")
	return name != "" && !strings.Contains(before, ":")
}

func homeVariableName() string {
	if runtime.GOOS == "windows" {
		return "USERPROFILE"
	}
	return "HOME"
}

// noteUnknownPlaceholder adds a note about a placeholder that is not converted. The note contains the placeholder's
// name, but not its default, which may be a secret.
func (c *rowConverter) noteUnknownPlaceholder(placeholder string) {
	open, inner, _ := strings.Cut(placeholder, "{")
	shown := open + "{" + configfile.PlaceholderName(strings.TrimSuffix(inner, "}")) + "}"
	if len(shown) > 60 {
		shown = "a placeholder"
	}
	c.addNote(c.from.Line, "%s in %q means nothing outside of %s, and stayed as it is", shown, c.current,
		c.grammar.title)
}

// promptVariable returns a reference to an environment variable, such as ${API_KEY}, for the input prompt with the
// given id. The editor asks the person for the value; Drawbridge reads the variable instead. The reference includes the
// prompt's default.
func (c *rowConverter) promptVariable(id string) string {
	name := strings.Map(func(r rune) rune {
		if r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '_'
	}, strings.ToUpper(id))
	if name == "" || name[0] >= '0' && name[0] <= '9' {
		name = "_" + name
	}
	c.addNote(c.from.Line, "%s asks you for %s; Drawbridge reads it from the variable %s", c.grammar.title,
		safetext.Quote(id), name)
	if def := c.inputs[id]; def != "" && !strings.ContainsAny(def, "${}") {
		return "${" + name + ":-" + def + "}"
	}
	return "${" + name + "}"
}

// opencodeText converts a string of opencode, with the placeholders {env:NAME} and {file:path}.
func opencodeText(c *rowConverter, s string) string {
	return replaceMatches(s, curlyPlaceholder(), func(groups []string) string {
		if groups[1] == "env" && groups[2] != "" && !strings.Contains(groups[2], ":") {
			return "${" + groups[2] + "}"
		}
		c.noteUnknownPlaceholder(groups[0])
		return escapePlaceholders(groups[0])
	})
}

// dollarText converts a string of a program that expands both $NAME and ${NAME}.
func dollarText(c *rowConverter, s string) string {
	return replaceMatches(s, dollarVariable(), func(groups []string) string {
		name, def, hasDefault := strings.Cut(groups[1]+groups[2], ":-")
		switch {
		case !variablePattern().MatchString(name):
			c.noteUnknownPlaceholder(groups[0])
			return escapePlaceholders(groups[0])
		case hasDefault:
			return "${" + name + ":-" + def + "}"
		}
		return "${" + name + "}"
	})
}

// dollarOrPercentText is like dollarText, and also converts %NAME%. In a URL, %NAME% is not converted, because percent
// signs are escapes there.
func dollarOrPercentText(c *rowConverter, s string) string {
	s = dollarText(c, s)
	if c.current == "url" || c.current == "httpUrl" {
		return s
	}
	return percentVariable().ReplaceAllString(s, "$${$1}")
}

// shellText converts a string that the program expands with a shell. The string may contain variables. If the whole
// value of env or headers is "$(command)", it becomes "!" followed by the command.
func shellText(c *rowConverter, s string) string {
	inside := wholeCommand().FindStringSubmatch(s)
	if inside != nil && (c.current == "env" || c.current == "headers") && !strings.Contains(inside[1], "$(") {
		return "!" + strings.TrimSpace(inside[1])
	}
	if strings.Contains(s, "$(") || strings.Contains(s, "`") {
		c.addNote(c.from.Line, "a command in %q means nothing outside of %s, and stayed as it is", c.current,
			c.grammar.title)
	}
	return dollarText(c, s)
}
