package guards

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/deck"
	"github.com/drawbridge-mcp/drawbridge/internal/policy"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// ownFilesRule names the guard in records and to people.
const ownFilesRule = "own-files"

// The bounds of what is looked at: a path, how deep it may stand in the arguments, how many links lead on.
const (
	maxPath          = 4096
	maxArgumentDepth = 64
	maxLinks         = 255
	// maxFollowed is how many paths of a text are followed through links.
	maxFollowed = 1024
)

// OwnFiles is what is ours.
type OwnFiles struct {
	// Home is the person's, for which "~" stands; empty where nobody knows it.
	Home string
	// Paths are files and directories with all that is in them, Beginnings those of the names of files. All are
	// absolute.
	Paths, Prefixes []string
	// WorkingDir gives the directory that a server's relative paths start at; empty for one that is reached by a URL.
	WorkingDir func(drawbridge.ServerID) string
	// RelativeDirs gives those that they may start at as well, of which one may be no directory; nil where nobody
	// knows any.
	RelativeDirs func(drawbridge.ServerID) []string
}

// A OwnFileGuard guards what is ours. The zero value knows of nothing, and refuses every call.
type OwnFileGuard struct{ files atomic.Pointer[OwnFiles] }

var _ deck.Guard = (*OwnFileGuard)(nil)

// Update puts what is ours in the place of what was, each path with where it really leads.
func (k *OwnFileGuard) Update(o OwnFiles) {
	for _, all := range []*[]string{&o.Paths, &o.Prefixes} {
		var known []string
		for _, path := range *all {
			known = append(known, foldCase(filepath.Clean(path)))
			if real, err := resolveLinks(path); err == nil && foldCase(real) != known[len(known)-1] {
				known = append(known, foldCase(real))
			}
		}
		*all = known
	}
	k.files.Store(&o)
}

// Decide refuses what leads to our files. The person at the command line may have a tool do what they could do
// themselves.
func (k *OwnFileGuard) Decide(_ context.Context, q deck.Question) drawbridge.Verdict {
	o := k.files.Load()
	refused := drawbridge.Verdict{Effect: drawbridge.Deny, Rule: ownFilesRule,
		Reason: "nobody knows which files are Drawbridge's own"}
	if o == nil {
		return refused
	}
	if q.Caller.Kind == drawbridge.Author || q.Kind == "tool" && q.Spec.Server == "" {
		return drawbridge.Verdict{Effect: drawbridge.Allow}
	}
	l := argumentScan{own: o, workingDir: o.WorkingDir(q.Spec.Server), definition: q.Spec.Definition}
	if o.RelativeDirs != nil {
		l.relativeDirs = o.RelativeDirs(q.Spec.Server)
	}
	leads := false
	err := error(nil)
	for m := range rawjson.Members(q.Params) {
		if m.HasName("_meta") || m.HasName("name") && q.Kind == "tool" { // that is the card's, which was found by it
			continue
		}
		if leads, err = l.scanValue(m.Name, m.Value, 0); leads || err != nil {
			break
		}
	}
	switch {
	case err != nil:
		refused.Reason = "where a path in the arguments leads cannot be told: " + err.Error()
	case leads:
		refused.Reason = "an argument leads to a file of Drawbridge's own, which no tool may touch"
		refused.Next = "a person can, with the drawbridge command or an editor"
	default:
		return drawbridge.Verdict{Effect: drawbridge.Allow}
	}
	return refused
}

// A argumentScan is at the arguments of one call.
type argumentScan struct {
	own          *OwnFiles
	workingDir   string
	relativeDirs []string
	// definition is the card's, which may say what the arguments are.
	definition json.RawMessage
}

var errDeep = errors.New("the arguments nest too deeply")

// topArgumentDepth is how deep an argument stands in the params: what is as deep is one, or a text in a list of the
// params.
const topArgumentDepth = 1

// scanValue looks at a value and all that is in it. A text in a list goes by the list's name, which is given as it
// stands. A name may be a path as well: {"files": {"/a": "text"}}.
func (l argumentScan) scanValue(named, value json.RawMessage, depth int) (leads bool, err error) {
	if depth > maxArgumentDepth {
		return false, errDeep
	}
	if len(value) == 0 {
		return false, nil
	}
	switch value[0] {
	case '{':
		for m := range rawjson.Members(value) {
			if name, _ := rawjson.DecodeString(m.Name); hasSlash(name) {
				if leads, err = l.pathsIn(name, false); leads || err != nil {
					return leads, err
				}
				if leads, err = l.scanText("", name); leads || err != nil {
					return leads, err
				}
			}
			if leads, err = l.scanValue(m.Name, m.Value, depth+1); leads || err != nil {
				return leads, err
			}
		}
	case '[':
		for item := range rawjson.Elements(value) {
			if leads, err = l.scanValue(named, item, depth+1); leads || err != nil {
				return leads, err
			}
		}
	case '"':
		return l.text(named, value, depth)
	}
	return false, nil
}

// text looks at a text: as a path, at the paths in it, and at the list or the object that it may be.
func (l argumentScan) text(named, value json.RawMessage, depth int) (leads bool, err error) {
	name, _ := rawjson.DecodeString(named)
	text, _ := rawjson.DecodeString(value)
	command := policy.IsCommandArgument(name)
	if leads, err = l.pathsIn(text, command); leads || err != nil {
		return leads, err
	}
	if command && !policy.IsFileURI(text) {
		return false, nil
	}
	if depth <= topArgumentDepth { // servers look into a text for what they want
		if leads, err = l.scanJSONText(name, named, value, depth); leads || err != nil {
			return leads, err
		}
	}
	return l.scanText(name, text)
}

// scanJSONText looks at the list or the object that an argument is, although it stands in a text: unless a text is
// what the tool wants.
func (l argumentScan) scanJSONText(name string, named, value json.RawMessage, depth int) (bool, error) {
	text, _ := rawjson.DecodeString(value)
	inside, err := policy.JSONInText(text)
	if inside == nil && err == nil || policy.IsTextOnly(l.definition, name) && !policy.IsPathArgument(name) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return l.scanValue(named, inside, depth+1)
}

// pathsIn looks at the paths that stand in a text. Links are followed in the first of them only, unless it is a
// command line: a long document may have very many paths in it.
func (l argumentScan) pathsIn(text string, command bool) (bool, error) {
	found, err := policy.FindPaths(text, command)
	if err != nil {
		return false, err
	}
	for i, one := range found {
		if len(one.Path) > maxPath {
			continue
		}
		for _, path := range policy.PathSpellings(one.Path, l.own.Home) {
			path = filepath.FromSlash(path)
			if !filepath.IsAbs(path) {
				continue
			}
			if leads, err := l.leadsToOwn(path, command || i < maxFollowed); leads || err != nil {
				return leads, err
			}
		}
	}
	return false, nil
}

// scanText looks at a text that may be a path. What no path is leads nowhere: a text with a line end or a NUL, a very
// long one, a word; but some programs take line ends away from what is named a path, or is a URI.
func (l argumentScan) scanText(name, text string) (bool, error) {
	if text == "" || len(text) > maxPath || hasLineEnd(text) && !policy.IsPathArgument(name) &&
		!policy.IsFileURI(text) {
		return false, nil
	}
	for _, path := range policy.PathSpellings(text, l.own.Home) {
		if hasLineEnd(path) {
			continue
		}
		if leads, err := l.checkPath(path, hasSlash(text) || policy.IsPathArgument(name)); leads || err != nil {
			return leads, err
		}
	}
	return false, nil
}

// hasLineEnd says whether a text has a line end or a NUL in it.
func hasLineEnd(text string) bool {
	return strings.IndexByte(text, '\n') >= 0 || strings.IndexByte(text, '\r') >= 0 || strings.IndexByte(text, 0) >= 0
}

func hasSlash(text string) bool {
	return strings.IndexByte(text, '/') >= 0 || strings.IndexByte(text, '\\') >= 0
}

// checkPath looks at one path, and where that is worth it follows it, also from the directories that it may start at
// beside the server's own.
func (l argumentScan) checkPath(path string, worth bool) (bool, error) {
	path = filepath.FromSlash(path)
	if filepath.IsAbs(path) {
		return l.leadsToOwn(path, worth)
	}
	if l.workingDir != "" {
		if leads, err := l.leadsToOwn(l.workingDir+string(filepath.Separator)+path, worth); leads || err != nil {
			return leads, err
		}
	}
	if !worth {
		return false, nil
	}
	for _, dir := range l.relativeDirs {
		if rest, ok := strings.CutPrefix(dir, "~"); ok && l.own.Home != "" {
			dir = l.own.Home + rest
		}
		if dir == l.workingDir || !filepath.IsAbs(dir) {
			continue
		}
		leads, err := l.leadsToOwn(dir+string(filepath.Separator)+path, true)
		if (leads || err != nil) && !isFile(dir) { // nothing is below a program that the row names
			return leads, err
		}
	}
	return false, nil
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// leadsToOwn says whether an absolute path leads to what is ours. It is followed where that is worth it.
func (l argumentScan) leadsToOwn(path string, worth bool) (bool, error) {
	if l.own.has(filepath.Clean(path)) { // as programs take ".." out, who ask nobody what a link is
		return true, nil
	}
	if !worth {
		return false, nil
	}
	real, err := resolveLinks(path)
	return err == nil && l.own.has(real), err
}

// has says whether a path is one of ours, or below one.
func (o *OwnFiles) has(path string) bool {
	path = foldCase(path)
	for _, own := range o.Paths {
		if rest, ok := strings.CutPrefix(path, own); ok && (rest == "" || os.IsPathSeparator(rest[0])) {
			return true
		}
	}
	for _, own := range o.Prefixes {
		if strings.HasPrefix(path, own) {
			return true
		}
	}
	return false
}

// foldCase makes paths alike that systems take for one.
func foldCase(path string) string {
	if runtime.GOOS == "darwin" || runtime.GOOS == "windows" {
		return strings.ToLower(path)
	}
	return path
}

var errLinks = errors.New("too many links")

// resolveLinks gives where a path leads, through all links. What is not there, or not to be looked at, leads where it
// says.
func resolveLinks(path string) (string, error) {
	volume := filepath.VolumeName(path)
	done, rest := volume+string(filepath.Separator), path[len(volume):]
	for links := 0; ; {
		rest = strings.TrimLeft(rest, string(filepath.Separator))
		if rest == "" {
			return done, nil
		}
		name, after, _ := strings.Cut(rest, string(filepath.Separator))
		rest = after
		next := filepath.Join(done, name) // ".." of where a link led
		info, err := os.Lstat(next)
		if err != nil || info.Mode()&os.ModeSymlink == 0 {
			done = next
			continue
		}
		to, err := os.Readlink(next)
		if links++; err != nil || links > maxLinks {
			return "", errLinks
		}
		if filepath.IsAbs(to) {
			volume = filepath.VolumeName(to)
			done, to = volume+string(filepath.Separator), to[len(volume):]
		}
		rest = to + string(filepath.Separator) + rest
	}
}
