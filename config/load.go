package config

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/drawbridge-mcp/drawbridge/config/doc"

	"github.com/drawbridge-mcp/drawbridge"
)

// MaxFile is the most bytes that a file of the configuration may have, MaxRows the most servers that are taken from it.
// A file may come from a stranger's project.
const (
	MaxFile = 4 << 20
	MaxRows = 1000
)

// maxWarnings is how many warnings about one file are kept.
const maxWarnings = 100

// Load reads the configuration that o describes. The order of rows is that of the files: project, then user, then
// legacy, or that of o.Paths; within a file it is the file's.
//
// The error is a *drawbridge.Fault with the code InvalidInput: for a path in o.Paths that does not exist or is not what
// its name says, naming it, its line and its column; and for a user-level drawbridge.toml that is broken or has a bad
// value, since a gateway that ignores a setting may guard less than its owner believes. Whatever else is wrong is a
// warning, or the Reason of a row.
func Load(o Options) (Set, error) {
	l := &loader{lookup: o.LookupEnv, dir: o.Dir, home: o.Home, config: o.XDGConfig}
	if err := l.locate(); err != nil {
		return Set{}, err
	}
	sources, err := l.sources(o.Paths)
	if err != nil {
		return Set{}, err
	}
	for _, src := range sources {
		if err := l.load(src); err != nil {
			return Set{}, err
		}
	}
	return l.set, nil
}

type loader struct {
	lookup            func(string) (string, bool)
	dir, home, config string
	set               Set
}

// locate finds the directories that paths start at. Without a home there are no user-level files.
func (l *loader) locate() (err error) {
	if l.lookup == nil {
		l.lookup = os.LookupEnv
	}
	if l.dir, err = filepath.Abs(l.dir); err != nil {
		return broken("find the working directory", err)
	}
	homeVariable := "HOME"
	if runtime.GOOS == "windows" {
		homeVariable = "USERPROFILE"
	}
	if l.home == "" {
		l.home, _ = l.lookup(homeVariable)
	}
	if l.config == "" {
		l.config, _ = l.lookup("XDG_CONFIG_HOME")
	}
	if l.config != "" && !filepath.IsAbs(l.config) {
		l.config = "" // the XDG specification: a relative path is to be ignored
	}
	if l.config == "" && l.home != "" {
		l.config = filepath.Join(l.home, ".config")
	}
	return nil
}

// A source is one file to read.
type source struct {
	path  string
	kind  OriginKind
	shape *shape
	// named says that a person named the very file: what is wrong with it is an error.
	named bool
	// rows and settings say what is taken from the file.
	rows, settings bool
}

// sources lists the files to read, each once.
func (l *loader) sources(paths []string) ([]source, error) {
	if len(paths) == 0 {
		return once(l.discover(l.dir, Project)), nil
	}
	var all []source
	for _, path := range splitPaths(l.dir, paths) {
		abs := l.abs(path)
		info, err := os.Stat(abs)
		switch {
		case path == "" || err != nil:
			return nil, missing(path, err)
		case info.IsDir():
			all = append(all, l.discover(abs, Explicit)...)
		default:
			all = append(all, source{path: abs, kind: Explicit, shape: shapeOf(abs), named: true, rows: true})
		}
	}
	if path := under(l.config, settingsPath); path != "" {
		all = append(all, source{path: path, kind: User, shape: &nativeTOML, settings: true})
	}
	return once(all), nil
}

func (l *loader) abs(path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(l.dir, path)
}

// splitPaths splits values on commas. A file whose name has a comma in it is itself.
func splitPaths(dir string, values []string) []string {
	var paths []string
	for _, value := range values {
		whole := value
		if !filepath.IsAbs(whole) {
			whole = filepath.Join(dir, whole)
		}
		if _, err := os.Stat(whole); err == nil || !strings.Contains(value, ",") {
			paths = append(paths, value)
			continue
		}
		for part := range strings.SplitSeq(value, ",") {
			paths = append(paths, strings.TrimSpace(part))
		}
	}
	return paths
}

// discover lists the conventional files of a working directory, whether they exist or not.
func (l *loader) discover(dir string, project OriginKind) []source {
	if sameFile(dir, l.home) {
		project = User
	}
	var all []source
	for _, p := range providers() {
		for _, at := range p.places {
			src := source{kind: User, shape: at.shape, rows: true}
			switch at.root {
			case projectRoot:
				src.path, src.kind = filepath.Join(dir, filepath.FromSlash(at.path)), project
			case configRoot:
				src.path = under(l.config, at.path)
			case homeRoot:
				src.path = under(l.home, at.path)
			}
			if src.path == "" {
				continue
			}
			if at.root == configRoot && at.path == settingsPath {
				src.settings = true
			}
			all = append(all, src)
		}
	}
	return all
}

// under joins a path with slashes to a directory; empty where there is no directory.
func under(dir, path string) string {
	if dir == "" {
		return ""
	}
	return filepath.Join(dir, filepath.FromSlash(path))
}

// once leaves out a file that was listed before under any name. One that is a project's and the person's own is the
// person's own.
func once(all []source) []source {
	var kept []source
	for _, src := range all {
		i := slices.IndexFunc(kept, func(k source) bool { return sameFile(k.path, src.path) })
		if i < 0 {
			kept = append(kept, src)
			continue
		}
		kept[i].named = kept[i].named || src.named
		kept[i].rows = kept[i].rows || src.rows
		kept[i].settings = kept[i].settings || src.settings
		if kept[i].kind == Project {
			kept[i].kind = src.kind
		}
	}
	return kept
}

func sameFile(a, b string) bool {
	if a == b {
		return true
	}
	x, errA := os.Stat(a)
	y, errB := os.Stat(b)
	return errA == nil && errB == nil && os.SameFile(x, y)
}

// load reads one file into the set.
func (l *loader) load(src source) error {
	data, err := src.read()
	if errors.Is(err, fs.ErrNotExist) && !src.named {
		return nil
	}
	var root doc.Node
	if err == nil {
		root, err = src.shape.parse(data)
	}
	if err == nil && src.settings {
		err = l.loadSettings(src, root)
	}
	if err != nil {
		return l.unreadable(src, err)
	}
	l.set.Sources = append(l.set.Sources, src.path)
	before := len(l.set.Warnings)
	defer func() { l.trim(src, before) }()
	if src.shape.settings && !src.settings {
		l.ignoreSettings(src, root)
	}
	if src.rows {
		l.loadRows(src, root)
	}
	return nil
}

// read gives the file's bytes. Of what is no regular file, only one that a person named is read: a pipe may block.
func (src source) read() ([]byte, error) {
	info, err := os.Stat(src.path)
	switch {
	case err != nil:
		return nil, err
	case info.IsDir() || !src.named && !info.Mode().IsRegular():
		return nil, errors.New("this is not a regular file")
	}
	f, err := os.Open(src.path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, MaxFile+1))
	if len(data) > MaxFile {
		return nil, fmt.Errorf("the file is larger than %d MiB", MaxFile>>20)
	}
	return data, err
}

// unreadable is an error where a person named the file or it holds their settings, else a warning.
func (l *loader) unreadable(src source, err error) error {
	at, ok := errors.AsType[*doc.Error](err)
	if !ok {
		at = doc.Wrong(0, "%s", cause(err))
	}
	if !src.named && !src.settings {
		l.warn(src, at.Line, "%s; the file was left out", at.Text)
		return nil
	}
	place := Origin{Path: src.path, Line: at.Line}.String()
	if at.Col > 0 {
		place += fmt.Sprintf(":%d", at.Col)
	}
	return broken("read "+place, errors.New(at.Text))
}

func (l *loader) loadSettings(src source, root doc.Node) error {
	r := &settingsReader{file: filepath.Dir(src.path), home: l.home, lookup: l.lookup}
	if err := r.read(root); err != nil {
		return err
	}
	l.set.Settings = r.settings
	l.warnAll(src, r.problems)
	return nil
}

// ignoreSettings warns about settings where none are read.
func (l *loader) ignoreSettings(src source, root doc.Node) {
	for _, section := range root.Members {
		mine := func(m doc.Member) bool { return section.Name == "mcp" && m.Name == "servers" }
		if slices.ContainsFunc(section.Value.Members, mine) && len(section.Value.Members) == 1 {
			continue
		}
		l.warn(src, section.Line, "the settings of this file are ignored: they are read from the user's own %s only", settingsPath)
		return
	}
}

func (l *loader) loadRows(src source, root doc.Node) {
	rows, problems := src.shape.rows(root)
	l.warnAll(src, problems)
	if len(rows) > MaxRows {
		l.warn(src, rows[MaxRows].line, "the file has %d servers; those from here on were left out", len(rows))
		rows = rows[:MaxRows]
	}
	for _, row := range rows {
		r := &rowReader{dir: l.dir, lookup: l.lookup}
		r.server.Origin = Origin{Kind: src.kind, Path: src.path, Line: row.line}
		r.read(row)
		l.set.Warnings = append(l.set.Warnings, r.warnings...)
		l.add(r.server)
	}
}

// add gives the row its place. A row that is refused takes nobody's, and one that needs approval only that of another
// such row: a project may not take a person's own server away by bringing one of the same name.
func (l *loader) add(s Server) {
	i := slices.IndexFunc(l.set.Servers, func(first Server) bool {
		return first.ID == s.ID && s.Phase != drawbridge.Refused && first.Phase != drawbridge.Refused &&
			(first.Origin.Kind == Project) == (s.Origin.Kind == Project)
	})
	if i < 0 {
		l.set.Servers = append(l.set.Servers, s)
		return
	}
	l.set.Shadowed = append(l.set.Shadowed, s)
	if first := l.set.Servers[i]; first.Origin.Path == s.Origin.Path {
		l.set.Warnings = append(l.set.Warnings, Warning{s.Origin, s.ID,
			fmt.Sprintf("Server %q: the file has it twice; the one on line %d counts", s.ID, first.Origin.Line)})
	}
}

func (l *loader) warn(src source, line int, format string, args ...any) {
	origin := Origin{Kind: src.kind, Path: src.path, Line: line}
	l.set.Warnings = append(l.set.Warnings, Warning{Origin: origin, Text: fmt.Sprintf(format, args...)})
}

// trim keeps a file from burying what is said about the others. Before is how many warnings there were without it.
func (l *loader) trim(src source, before int) {
	if over := len(l.set.Warnings) - before - maxWarnings; over > 0 {
		l.set.Warnings = l.set.Warnings[:before+maxWarnings]
		l.warn(src, 0, "%d more warnings about this file are not shown", over)
	}
}

func (l *loader) warnAll(src source, problems []*doc.Error) {
	for _, p := range problems {
		l.warn(src, p.Line, "%s", p.Text)
	}
}

func missing(path string, err error) error {
	if path == "" {
		return broken("read the configuration", errors.New("the path is empty"))
	}
	fault := broken("read "+path, errors.New(cause(err)))
	fault.Next = "name a file, or a directory to search"
	return fault
}

func broken(step string, err error) *drawbridge.Fault {
	return &drawbridge.Fault{Kind: drawbridge.Backend, Code: drawbridge.InvalidInput, Step: step, Err: err}
}

// cause takes the path out of an error of the file system: the step names it already.
func cause(err error) string {
	if errors.Is(err, fs.ErrNotExist) {
		return "there is no such file or directory"
	}
	if path, ok := errors.AsType[*fs.PathError](err); ok {
		err = path.Err
	}
	return err.Error()
}
