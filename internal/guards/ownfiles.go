package guards

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"unicode"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/deck"
	"github.com/drawbridge-mcp/drawbridge/internal/policy"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// ownFilesRule is the name of the guard in audit records and messages.
const ownFilesRule = "own-files"

// Limits of the search in arguments: the length of a path, the nesting depth, and the number of symbolic links in one
// path.
const (
	maxPath          = 4096
	maxArgumentDepth = 64
	maxLinks         = 255
	// maxFollowed is the maximum number of paths in one text whose symbolic links are followed.
	maxFollowed = 1024
)

// OwnFiles describes the files that Drawbridge protects.
type OwnFiles struct {
	// Home is the home directory of the user, which replaces "~"; empty if it is unknown.
	Home string
	// Paths are protected files, and protected directories with their content. Prefixes are texts: every path that
	// begins with one of them is protected. All paths are absolute.
	Paths, Prefixes []string
	// Dir is the directory to which relative paths in calls of Drawbridge's own tools are joined, for callers that have
	// no directory of their own.
	Dir string
	// WorkingDir returns the directory to which a server joins relative paths; "" for a server with a URL.
	WorkingDir func(drawbridge.ServerID) string
	// RelativeDirs returns further directories to which a server may join relative paths. Some of the returned paths
	// may be files. RelativeDirs may be nil.
	RelativeDirs func(drawbridge.ServerID) []string
}

// An OwnFileGuard refuses calls that access protected files. The zero value has no list of files, and refuses every
// call.
type OwnFileGuard struct{ files atomic.Pointer[OwnFiles] }

var _ deck.Guard = (*OwnFileGuard)(nil)

// Update replaces the list of protected files. It also protects the targets of symbolic links in the list.
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

// Decide refuses calls with an argument that leads to a protected file. It allows every call of the user at the command
// line, who can change the files without Drawbridge.
func (k *OwnFileGuard) Decide(_ context.Context, q deck.Question) drawbridge.Verdict {
	o := k.files.Load()
	refused := drawbridge.Verdict{Effect: drawbridge.Deny, Rule: ownFilesRule,
		Reason: "the list of Drawbridge's own files is missing"}
	if o == nil {
		return refused
	}
	if q.Caller.Kind == drawbridge.Author {
		return drawbridge.Verdict{Effect: drawbridge.Allow}
	}
	var leads bool
	var err error
	if q.Kind == "tool" && q.Spec.Server == "" {
		leads, err = o.isReachedByOwnTool(q)
	} else {
		leads, err = o.isReachedByServer(q)
	}
	switch {
	case err != nil:
		refused.Reason = "resolve a path in the arguments: " + err.Error()
	case leads:
		refused.Reason = "an argument leads to a file of Drawbridge's own, which no tool may touch"
		refused.Next = "a person can, with the drawbridge command or an editor"
	default:
		return drawbridge.Verdict{Effect: drawbridge.Allow}
	}
	return refused
}

// isReachedByServer reports whether an argument of a call leads to a protected file. The call uses a server's tool,
// prompt or resource.
func (o *OwnFiles) isReachedByServer(q deck.Question) (leads bool, err error) {
	l := argumentScan{own: o, workingDir: o.WorkingDir(q.Spec.Server), definition: q.Spec.Definition}
	if o.RelativeDirs != nil {
		l.relativeDirs = o.RelativeDirs(q.Spec.Server)
	}
	for m := range rawjson.Members(q.Params) {
		if m.HasName("_meta") || m.HasName("name") && q.Kind == "tool" { // the name of the card
			continue
		}
		if leads, err = l.scanValue(m.Name, m.Value, 0); leads || err != nil {
			break
		}
	}
	return leads, err
}

// isReachedByOwnTool is like isReachedByServer, for a call of one of Drawbridge's own tools. Only arguments with a path
// or a command are searched. Other arguments, such as the content of a file to write, may contain any path.
func (o *OwnFiles) isReachedByOwnTool(q deck.Question) (leads bool, err error) {
	l := argumentScan{own: o, definition: q.Spec.Definition}
	if l.workingDir, err = (deck.Context{Dir: o.Dir}).WorkingDir(q.Caller); err != nil {
		return false, err
	}
	for name, m := range ownToolArguments(q.Params) {
		if name == "command" || slices.Contains(pathArguments, name) {
			if leads, err = l.scanValue(m.Name, m.Value, topArgumentDepth); leads || err != nil {
				break
			}
		}
		if command, ok := rawjson.DecodeString(m.Value); ok && name == "command" {
			if leads, err = l.scanWords(command); leads || err != nil {
				break
			}
		}
	}
	return leads, err
}

// scanWords checks each word of a command as a relative path. A command can spell a path in ways that scanWords does
// not detect. So it prevents mistakes but not attacks; only confinement of the command prevents attacks.
func (l argumentScan) scanWords(command string) (bool, error) {
	words := strings.FieldsFunc(command, func(c rune) bool { return unicode.IsSpace(c) || strings.ContainsRune("\"'`;|&<>()=$", c) })
	for _, word := range words[:min(len(words), maxFollowed)] {
		if leads, err := l.checkPath(word, true); leads || err != nil {
			return leads, err
		}
	}
	return false, nil
}

// Protects reports whether a path is protected. It does not resolve symbolic links in the path. Before the first Update
// every path is protected.
func (k *OwnFileGuard) Protects(path string) bool {
	o := k.files.Load()
	return o == nil || o.has(path)
}

// An argumentScan searches the arguments of one call for protected paths.
type argumentScan struct {
	own          *OwnFiles
	workingDir   string
	relativeDirs []string
	// definition is the definition of the called card. Its schema may declare that an argument is only a text.
	definition json.RawMessage
}

var errDeep = errors.New("the arguments nest too deeply")

// topArgumentDepth is the depth of an argument in the params. A text up to this depth may be JSON that a server parses.
const topArgumentDepth = 1

// scanValue searches a value and its members for protected paths. named is the JSON name of the member that contains
// the value. The elements of a list are searched with the name of the list. A member name may be a path too: {"files":
// {"/a": "text"}}.
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

// text searches one text in three ways: for paths inside the text, as encoded JSON, and as a path itself.
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
	if depth <= topArgumentDepth { // a server may parse the text of an argument
		if leads, err = l.scanJSONText(name, named, value, depth); leads || err != nil {
			return leads, err
		}
	}
	return l.scanText(name, text)
}

// scanJSONText searches a list or object that is encoded in an argument's text. It skips an argument that, according to
// the schema, is only a text.
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

// pathsIn searches the paths inside a text. In a command line, symbolic links in all paths are followed. In another
// text, links are followed only in the first maxFollowed paths, since a document may contain very many paths.
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

// scanText checks whether a text is a protected path. A very long text, or a text with a line end or NUL, is not a
// path. But some programs remove line ends. So a text with a line end is checked if it is a file URI or if the
// argument's name means a path.
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

// hasLineEnd reports whether a text contains a line end or a NUL.
func hasLineEnd(text string) bool {
	return strings.IndexByte(text, '\n') >= 0 || strings.IndexByte(text, '\r') >= 0 || strings.IndexByte(text, 0) >= 0
}

func hasSlash(text string) bool {
	return strings.IndexByte(text, '/') >= 0 || strings.IndexByte(text, '\\') >= 0
}

// checkPath checks one path. If follow is true, it follows symbolic links, and also joins a relative path to each of
// relativeDirs.
func (l argumentScan) checkPath(path string, follow bool) (bool, error) {
	path = filepath.FromSlash(path)
	if filepath.IsAbs(path) {
		return l.leadsToOwn(path, follow)
	}
	if l.workingDir != "" {
		if leads, err := l.leadsToOwn(l.workingDir+string(filepath.Separator)+path, follow); leads || err != nil {
			return leads, err
		}
	}
	if !follow {
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
		if (leads || err != nil) && !isFile(dir) { // a program in the server's command is not a directory
			return leads, err
		}
	}
	return false, nil
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// leadsToOwn reports whether an absolute path leads to a protected file. If follow is true, it follows symbolic links.
func (l argumentScan) leadsToOwn(path string, follow bool) (bool, error) {
	if l.own.has(filepath.Clean(path)) { // some programs remove ".." before they follow links
		return true, nil
	}
	if !follow {
		return false, nil
	}
	real, err := resolveLinks(path)
	return err == nil && l.own.has(real), err
}

// has reports whether a path is protected: it is listed, it is below a listed directory, or it begins with a listed
// prefix.
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

// foldCase returns the same spelling for all spellings of a path that the operating system treats as equal.
func foldCase(path string) string {
	if runtime.GOOS == "darwin" || runtime.GOOS == "windows" {
		return strings.ToLower(path)
	}
	return path
}

var errLinks = errors.New("too many links")

// resolveLinks returns a path with all symbolic links resolved. Names that do not exist or cannot be read remain
// unchanged in the path.
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
		next := filepath.Join(done, name) // ".." is relative to the target of a link
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
