package guards

import (
	"cmp"
	"context"
	"encoding/json"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/deck"
	"github.com/drawbridge-mcp/drawbridge/internal/flow"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// downloads matches commands that may print what comes from the network, and sends those that may send a file.
var (
	downloads = regexp.MustCompile(`://|/dev/(tcp|udp)/|\b(curl|wget|nc|ncat|netcat|ssh|scp|sftp|ftp|telnet|gh|` +
		`git\s+(-\S+\s+)*(clone|fetch|pull|ls-remote))\b`)
	sends = regexp.MustCompile(downloads.String() + `|\b(socat|openssl|rsync|dig|host|nslookup|ping|mail|sendmail|` +
		`aws|gcloud|gsutil|az|rclone|kubectl)\b`)
)

// readsAnything matches commands that may read files that they do not name, and copies those that copy or move whole
// directories.
var (
	readsAnything = regexp.MustCompile("[*?\\[$`]|\\b(find|xargs|grep|rg|tar|zip|rsync)\\b|" +
		`\b(python3?|node|perl|ruby|sh|bash)\s+-\w*[ceE]|\s-\w*[rR]`)
	copies = regexp.MustCompile(`\b(cp|mv|ln)\b`)
)

// harmless matches commands that only look at files, run the tests of the project, or commit, whatever their arguments
// are, and leaves a path that leads out of a directory.
var (
	harmless = regexp.MustCompile(`^` + harmlessPart + `( && ` + harmlessPart + `)*$`)
	leaves   = regexp.MustCompile(`(^|[\s/])\.\.(/|\s|$)`)
)

// The parts of harmless. A word is a path in the directory or a pattern. The message of a commit is a few words. A
// command that runs code has no flag that names a file, and a command in a pipe no file that it could write.
const (
	harmlessPath = `[\w.*][\w./:@~^*-]*`
	harmlessWord = `(` + harmlessPath + `|"[\w .:-][\w ./:-]*"|'[\w .:-][\w ./:-]*')`
	harmlessLook = `(ls|cat|head|tail|wc|pwd|stat|diff|cmp|grep|git (status|diff|log|show))( -(v|q|l|a|n|r|i|c|s|h|R|rn|la|al|` +
		`lh|lah|\d+|n ?\d+|-stat|-short|-oneline|-cached|-staged|-name-only)| ` + harmlessWord + `)*`
	harmlessRun = `((go|cargo) (test|vet|check|build)|pytest|python3? -m (pytest|unittest))` +
		`( -(v|q|x|n|s|run|race|short|count=\d+)| ` + harmlessWord + `)*` +
		`|make (test|check|lint|build)|(npm|yarn|pnpm)( run)? (test|lint|build)`
	harmlessCommit = `mkdir( -p)? \w[\w/-]*|git (checkout -b|switch -c) \w[\w/-]*|git add( -A| ` + harmlessPath + `)+` +
		`|git commit( -[aq])* -a?m ("[\w ,:#()-]{1,72}"|'[\w ,:#()-]{1,72}')`
	harmlessPipe = `( \| ((head|tail|wc|sort|uniq)( -([rnucl]|rn|nr|\d+|n ?\d+))*|grep( -[vincqE])* ` + harmlessWord + `))*`
	harmlessPart = `(cd ` + harmlessPath + `|` + harmlessLook + `|` + harmlessRun + `|` + harmlessCommit + `)( 2>&1)?` + harmlessPipe
)

// isHarmless reports whether a command only looks at files below a directory of the project, tests them or commits
// them.
func isHarmless(command, dir string) bool {
	return harmless.MatchString(command) && !leaves.MatchString(command) &&
		!leaves.MatchString(dir) && !filepath.IsAbs(dir)
}

// projectLabel is the label of files of the project.
var projectLabel = flow.Label{Integrity: flow.Project, Confidentiality: flow.Internal}

// commandSource returns the source for the output of a command in a directory: what it may have read. Files of the
// project are project text, and text from the network is untrusted. A file that a run wrote counts if the command names
// it, or could read it without and print it in another form; see also quoted.
func (g *FlowGuard) commandSource(ctx context.Context, dir, command string) flow.Source {
	s := flow.Source{Kind: "command", Name: firstWords(command), Label: projectLabel}
	if downloads.MatchString(command) {
		s.Label.Integrity = flow.Untrusted
	}
	written, err := g.files.current(ctx)
	if err != nil {
		s.Label = s.Label.Join(flow.Label{Integrity: flow.Untrusted, Confidentiality: flow.Private})
		return s
	}
	anything := readsAnything.MatchString(command) && !isHarmless(command, "")
	folders, folded, real := copies.MatchString(command), foldCase(command), realFile(dir)
	for path, f := range written {
		if strings.Contains(folded, filepath.Base(path)) || anything && isBelow(real, path) ||
			folders && namesFolder(folded, real, path) {
			s.Label = s.Label.Join(f.Label)
		}
	}
	for _, word := range strings.FieldsFunc(command, isShellSign) {
		words := []string{word}
		if strings.ContainsAny(word, "*?[") {
			words, _ = filepath.Glob(filepath.Join(dir, word)) // a pattern that is not valid stands for itself
		}
		if slices.ContainsFunc(words, g.isPrivateFile) {
			s.Label.Confidentiality = flow.Private
			break
		}
	}
	return s
}

// isShellSign reports whether a character ends the name of a file in a command.
func isShellSign(c rune) bool {
	return unicode.IsSpace(c) || strings.ContainsRune("'\"`=;|&()<>,:@{}", c)
}

// namesFolder reports whether a command names a directory between dir and a file.
func namesFolder(command, dir, file string) bool {
	below, err := filepath.Rel(dir, filepath.Dir(file))
	if err != nil || !filepath.IsLocal(below) {
		return false
	}
	isNamed := func(part string) bool { return part != "." && strings.Contains(command, part) }
	return slices.ContainsFunc(strings.Split(filepath.ToSlash(below), "/"), isNamed)
}

// maxQuoted is how many bytes of a file are compared with the output of a command. minQuotedLine and minSecret are the
// sizes of the shortest line of a file that a run wrote, and of the shortest secret, that are searched for.
const (
	maxQuoted     = 64 << 10
	minQuotedLine = 12
	minSecret     = 8
)

// quoted returns the join of a label with those of the files of a directory of which a line stands in an output: files
// that a run wrote, and private ones.
func (g *FlowGuard) quoted(ctx context.Context, dir, output string, label flow.Label) flow.Label {
	if len(output) < minSecret {
		return label
	}
	written, err := g.files.current(ctx)
	if err != nil {
		return flow.Label{Integrity: flow.Untrusted, Confidentiality: flow.Private}
	}
	real := realFile(dir)
	for path, f := range written {
		if label.Join(f.Label) != label && isBelow(real, path) && quotes(output, path, longLine) {
			label = label.Join(f.Label)
		}
	}
	n := 0
	// What cannot be read is not private.
	_ = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if n++; n > maxSearched || label.Confidentiality == flow.Private {
			return fs.SkipAll
		}
		if err != nil || entry.IsDir() && (entry.Name() == ".git" || entry.Name() == "node_modules") {
			return skipDirectory(entry)
		}
		if entry.Type().IsRegular() && g.isPrivateFile(path) && quotes(output, path, secretIn) {
			label.Confidentiality = flow.Private
		}
		return nil
	})
	return label
}

// maxSearched is the number of files among which private ones are searched after a command.
const maxSearched = 5000

// quotes reports whether part of a line of a file stands in a text; a line whose part is empty does not count.
func quotes(text, path string, part func(line string) string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	content, err := io.ReadAll(io.LimitReader(f, maxQuoted))
	if err != nil {
		return false
	}
	for line := range strings.Lines(string(content)) {
		if p := part(strings.TrimSpace(line)); p != "" && strings.Contains(text, p) {
			return true
		}
	}
	return false
}

// longLine returns a line, or an empty text for a short one.
func longLine(line string) string {
	if len(line) < minQuotedLine {
		return ""
	}
	return line
}

// secretIn returns the secret in a line of a private file; empty if there is none. In a line such as NAME=VALUE it is the
// value, if that is long or has a digit and a letter, and is not this machine.
func secretIn(line string) string {
	secret := line
	if _, value, ok := strings.Cut(line, "="); ok {
		secret = strings.Trim(value, `"' `)
		mixed := strings.ContainsFunc(secret, unicode.IsDigit) && strings.ContainsFunc(secret, unicode.IsLetter)
		if !mixed && len(secret) < 2*minSecret || strings.Contains(secret, "localhost") {
			return ""
		}
	}
	if len(secret) < minSecret {
		return ""
	}
	return secret
}

// sentFile returns the private file that a command may read and send at once, as a source; nil if there is none.
func (g *FlowGuard) sentFile(ctx context.Context, q deck.Question, command string) *flow.Source {
	if !sends.MatchString(command) {
		return nil
	}
	s := g.commandSource(ctx, q.Caller.Dir, command)
	if s.Label.Confidentiality < flow.Private {
		return nil
	}
	s.Label.Integrity = flow.Project
	return &s
}

// commandsOf returns the commands whose output a call of a tool for commands has returned, and how long a command in
// the background has run.
func commandsOf(q deck.Question, result *drawbridge.Result) (commands []string, took time.Duration) {
	arguments := argumentsOf(q)
	command := rawjson.GetString(arguments, "command")
	if command != "" || rawjson.GetString(arguments, "action") == "list" {
		return []string{command}, 0
	}
	for job := range rawjson.Elements(rawjson.Get(result.Raw, "structuredContent", "jobs")) {
		commands = append(commands, rawjson.GetString(job, "command"))
		if ms, err := strconv.Atoi(string(rawjson.Get(job, "tookMs"))); err == nil {
			took = max(took, time.Duration(ms)*time.Millisecond)
		}
	}
	return commands, took
}

// afterCommand labels the output of a command and the files that it has changed.
func (g *FlowGuard) afterCommand(ctx context.Context, r *flowRun, q deck.Question, started time.Time,
	result *drawbridge.Result) (flow.Source, error) {
	dir, cwd := q.Caller.Dir, rawjson.GetString(argumentsOf(q), "cwd")
	if cwd != "" {
		if path, err := g.o.Context.ResolvePath(q.Caller, cwd); err == nil {
			dir = path
		}
	}
	commands, took := commandsOf(q, result)
	s := flow.Source{Kind: "command", Name: q.Spec.Tool, Label: projectLabel}
	for _, command := range commands {
		one := g.commandSource(ctx, dir, command)
		s.Name, s.Label = cmp.Or(one.Name, s.Name), s.Label.Join(one.Label)
		if !isHarmless(command, cwd) { // it may print or write what the model has told it
			s.Label = s.Label.Join(r.Label())
		}
	}
	read, written := g.namedFiles(q.Caller, dir, commands, started.Add(-took))
	for _, path := range read {
		s.Label = s.Label.Join(g.fileSource(ctx, realFile(q.Caller.Dir), path).Label)
	}
	if dir != "" {
		var output strings.Builder
		for block := range rawjson.Elements(rawjson.Get(result.Raw, "content")) {
			output.WriteString(rawjson.GetString(block, "text"))
		}
		s.Label = g.quoted(ctx, dir, output.String(), s.Label)
	}
	return s, g.labelChangedFiles(ctx, dir, started.Add(-took), s, written...)
}

// systemFiles matches files that come with the system and its programs.
var systemFiles = regexp.MustCompile(`^/(usr|bin|sbin|lib\w*|etc|opt|dev|proc|sys|nix|System|Library)/`)

// namedFiles returns the files outside of the directory of a caller that commands in a directory name: those that the
// commands can only have read, and those that have changed since a time. Files of the system and temporary files do not
// count as read.
func (g *FlowGuard) namedFiles(caller drawbridge.Caller, dir string, commands []string, since time.Time) (
	read, changed []string) {
	inside, temporary := realFile(caller.Dir), realFile(os.TempDir())
	for _, command := range commands {
		for _, word := range strings.FieldsFunc(command, isShellSign) {
			if !strings.HasPrefix(word, "~") && !filepath.IsAbs(word) {
				word = filepath.Join(dir, word)
			}
			path, err := g.o.Context.ResolvePath(caller, word)
			if err != nil {
				continue
			}
			info, err := os.Stat(path)
			if err != nil || !info.Mode().IsRegular() || isBelow(inside, realFile(path)) {
				continue
			}
			switch isProgram := info.Mode().Perm()&0o111 != 0; {
			case !changeTime(info).Before(since):
				changed = append(changed, path)
			case !isProgram && !systemFiles.MatchString(path) && !isBelow(temporary, realFile(path)):
				read = append(read, path)
			}
		}
	}
	return read, changed
}

// interprets matches commands that may run a file that they name.
var interprets = regexp.MustCompile(`(^|[\s;&|])(\.|source|eval|exec|sh|bash|zsh|dash|ksh|fish|python[\d.]*|pytest|tox|node|npx|` +
	`deno|bun|perl|ruby|php|java|julia|Rscript|lua|make|cmake|psql|sqlite3|mysql|chmod|patch|xargs|env|sudo|git\s+apply)(\s|$)|` +
	`\b(awk|sed)\s(.*\s)?-\w*f|\./`)

// runFile returns the command of a call as a value that is not trusted, if the command may run a file that a run has
// written from text that is not trusted. Otherwise it returns nil.
func (g *FlowGuard) runFile(ctx context.Context, q deck.Question, arguments json.RawMessage) *flow.Value {
	command := rawjson.GetString(arguments, "command")
	if q.Spec.Server != "" || !slices.Contains(g.o.Tools.Commands, q.Spec.Tool) || !interprets.MatchString(command) {
		return nil
	}
	written, err := g.files.current(ctx)
	if err != nil {
		return &flow.Value{Path: "command", Text: command}
	}
	for path, f := range written {
		if f.Label.Integrity < flow.Project && strings.Contains(foldCase(command), filepath.Base(path)) {
			return &flow.Value{Path: "command", Text: command, Label: f.Label,
				Origin: &flow.Source{Kind: "file", Name: path + ", written from " + f.Origin.String(), Label: f.Label}}
		}
	}
	return nil
}

func firstWords(command string) string {
	words := strings.Fields(command)
	return strings.Join(words[:min(len(words), 2)], " ")
}
