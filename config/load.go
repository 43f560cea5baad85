package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"

	"github.com/drawbridge-mcp/drawbridge/config/dialect"
	"github.com/drawbridge-mcp/drawbridge/config/disk"
	"github.com/drawbridge-mcp/drawbridge/config/doc"
	"github.com/drawbridge-mcp/drawbridge/config/rules"
	"github.com/drawbridge-mcp/drawbridge/config/value"

	"github.com/drawbridge-mcp/drawbridge"
)

// MaxFile is the most bytes that a file of the configuration may have, MaxRows the most servers that are taken from it.
// A file may come from a stranger's project.
const (
	MaxFile = 4 << 20
	MaxRows = 1000
)

// maxTheirs is the most bytes of a file that another program keeps among the person's own: some keep a history in it.
const maxTheirs = 32 << 20

// maxWarnings is how many warnings about one file are kept.
const maxWarnings = 100

// Load reads the configuration that o describes. Providers come in the order of the table that Providers gives, and the
// files of each in the order there: the native family's project, user and legacy files, then what other programs keep in
// the project. With o.Paths the order is that of the paths. Within a file it is the file's.
//
// The error is a *drawbridge.Fault with the code InvalidInput: for a path in o.Paths that does not exist or is not what
// its name says, naming it, its line and its column; and for a user-level drawbridge.toml that is broken or has a bad
// value, since a gateway that ignores a setting may guard less than its owner believes. Whatever else is wrong is a
// warning, or the Reason of a row.
func Load(o Options) (Set, error) {
	l, err := newLoader(o)
	if err != nil {
		return Set{}, err
	}
	sources, err := l.sources(o.Paths)
	if err != nil {
		return Set{}, err
	}
	for i := range sources {
		l.open(&sources[i])
	}
	for _, src := range sources {
		if err := l.load(src); err != nil {
			return Set{}, err
		}
	}
	return l.set, nil
}

// LoadSettings reads the person's own drawbridge.toml and nothing else: the Settings that Load gives. The error is as for Load.
func LoadSettings(o Options) (Settings, error) {
	l, err := newLoader(o)
	if err != nil {
		return Settings{}, err
	}
	src, ok := l.ownSettings()
	if !ok {
		return Settings{}, nil
	}
	l.open(&src)
	err = l.load(src)
	return l.set.Settings, err
}

type loader struct {
	dialect.Base
	settings string
	approved func(Server) bool
	// disabled has the names that the person's own files turn off, and the file that says so.
	disabled map[string]string
	// first has the index in set.Servers of the row that has a standing.
	first map[standing]int
	set   Set
}

// newLoader finds the directories that paths start at. Without a home there are no user-level files.
func newLoader(o Options) (*loader, error) {
	l := &loader{approved: o.Approved, settings: o.Settings, disabled: map[string]string{}, first: map[standing]int{}}
	l.Base = dialect.Base{OS: runtime.GOOS, Config: o.XDGConfig, Home: o.Home, AppData: o.AppData, Lookup: o.LookupEnv}
	if l.Lookup == nil {
		l.Lookup = os.LookupEnv
	}
	var err error
	if l.Project, err = filepath.Abs(o.Dir); err != nil {
		return nil, disk.Broken("find the working directory", err)
	}
	homeVariable := "HOME"
	if l.OS == "windows" {
		homeVariable = "USERPROFILE"
	}
	for _, dir := range []struct {
		to       *string
		variable string
	}{{&l.Home, homeVariable}, {&l.Config, "XDG_CONFIG_HOME"}, {&l.AppData, "APPDATA"}} {
		if found, ok := l.Lookup(dir.variable); ok && *dir.to == "" {
			*dir.to = found
		}
	}
	if l.Config != "" && !filepath.IsAbs(l.Config) {
		l.Config = "" // the XDG specification: a relative path is to be ignored
	}
	if l.Config == "" && l.Home != "" {
		l.Config = filepath.Join(l.Home, ".config")
	}
	return l, nil
}

// sources lists the files to read, each once.
func (l *loader) sources(paths []string) ([]source, error) {
	if len(paths) == 0 {
		return once(l.discover(l.Project, Project)), nil
	}
	var all []source
	for _, path := range disk.Split(l.Project, paths) {
		abs := l.abs(path)
		info, err := os.Stat(abs)
		switch {
		case path == "" || err != nil:
			return nil, disk.Missing(path, err)
		case info.IsDir():
			all = append(all, l.discover(abs, Explicit)...)
		default:
			all = append(all, source{path: abs, kind: Explicit, provider: "native", shape: dialect.Of(abs), named: true, rows: true})
		}
	}
	if src, ok := l.ownSettings(); ok {
		all = append(all, src)
	}
	return once(all), nil
}

// ownSettings is the person's own drawbridge.toml; false where there is no place for one.
func (l *loader) ownSettings() (source, bool) {
	if l.settings != "" {
		path := l.abs(l.settings)
		return source{path: path, kind: User, provider: "native", shape: dialect.Of(dialect.SettingsPath), named: true, settings: true}, true
	}
	if l.Config == "" {
		return source{}, false
	}
	path := filepath.Join(l.Config, filepath.FromSlash(dialect.SettingsPath))
	return source{path: path, kind: User, provider: "native", shape: dialect.Of(path), settings: true}, true
}

func (l *loader) abs(path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(l.Project, path)
}

// discover lists the conventional files of a working directory, whether they exist or not: all of the native family, and
// those that other programs keep in the directory. What these keep elsewhere is theirs, even where the directory has it
// too.
func (l *loader) discover(dir string, project OriginKind) []source {
	if disk.Same(dir, l.Home) {
		project = User
	}
	base := l.Base
	base.Project = dir
	var all []source
	var theirs []string
	for _, p := range dialect.Providers() {
		for _, at := range p.Places {
			src := source{path: at.File(base), kind: User, provider: p.Name, shape: at.Shape, rows: true, dir: dir}
			if at.Root == dialect.Project {
				src.kind = project
			}
			native := p.Name == "native"
			switch {
			case src.path == "":
				continue
			case !native && src.kind == User:
				theirs = append(theirs, src.path)
				continue
			case native && at.Root == dialect.Config && at.Path == dialect.SettingsPath:
				src.settings = true
			}
			all = append(all, src)
		}
	}
	own := disk.Stats(theirs)
	return slices.DeleteFunc(all, func(src source) bool { return src.provider != "native" && disk.IsOneOf(src.path, own) })
}

// open reads and parses a file. What the person's own files turn off is off wherever it is written, and so is found before
// any row is.
func (l *loader) open(src *source) {
	data, err := src.read()
	if err == nil {
		src.root, err = src.shape.Parse(data)
	}
	src.err = err
	if !src.shape.Native || src.shape.Settings || src.kind == Project || err != nil {
		return
	}
	for name := range dialect.Disabled(src.root) {
		if l.disabled[name] == "" {
			l.disabled[name] = src.path
		}
	}
}

// load takes the rows and settings of a file into the set.
func (l *loader) load(src source) error {
	err := src.err
	if errors.Is(err, fs.ErrNotExist) && !src.named {
		if !src.settings || !disk.Dangles(src.path) {
			return nil
		}
		err = errors.New("a link on the way to it leads nowhere")
	}
	if err == nil && src.settings {
		err = l.loadSettings(src)
	}
	if err != nil {
		return l.unreadable(src, err)
	}
	l.set.Sources = append(l.set.Sources, src.path)
	before := len(l.set.Warnings)
	defer func() { l.trim(src, before) }()
	if src.shape.Settings && !src.settings {
		l.ignoreSettings(src)
	}
	if src.rows {
		l.loadRows(src)
	}
	return nil
}

// unreadable is an error where a person named the file or it holds their settings, else a warning.
func (l *loader) unreadable(src source, err error) error {
	at, ok := errors.AsType[*doc.Error](err)
	if !ok {
		at = doc.Wrong(0, "%s", disk.Cause(err))
	}
	if !src.named && !src.settings {
		l.warn(src, at.Line, "%s; the file was left out", at.Text)
		return nil
	}
	place := Origin{Path: src.path, Line: at.Line}.String()
	if at.Col > 0 {
		place += fmt.Sprintf(":%d", at.Col)
	}
	return disk.Broken("read "+place, errors.New(at.Text))
}

func (l *loader) loadSettings(src source) error {
	r := &settingsReader{Reader: value.Reader{Dir: filepath.Dir(src.path), Home: l.Home, Lookup: l.Lookup}, rules: rules.Reader{File: src.path, Home: l.Home}}
	if err := r.read(src.root); err != nil {
		return err
	}
	l.set.Settings = r.settings
	l.warnAll(src, r.problems)
	return nil
}

// ignoreSettings warns about settings where none are read.
func (l *loader) ignoreSettings(src source) {
	for _, section := range src.root.Members {
		mine := func(m doc.Member) bool { return section.Name == "mcp" && m.Name == "servers" }
		if slices.ContainsFunc(section.Value.Members, mine) && len(section.Value.Members) == 1 {
			continue
		}
		l.warn(src, section.Line, "the settings of this file are ignored: they are read from the user's own %s only", dialect.SettingsPath)
		return
	}
}

func (l *loader) loadRows(src source) {
	rows, problems := src.shape.Rows(src.root, src.dir)
	l.warnAll(src, problems)
	if len(rows) > MaxRows {
		l.warn(src, rows[MaxRows].Line, "the file has %d servers; those from here on were left out", len(rows))
		rows = rows[:MaxRows]
	}
	for _, row := range rows {
		s, warnings := l.row(src, row)
		l.set.Warnings = append(l.set.Warnings, warnings...)
		l.add(s)
	}
}

// row reads one row of a file, which the file's program wrote down in its own way.
func (l *loader) row(src source, row dialect.Row) (Server, []Warning) {
	r := &rowReader{dir: l.Project, home: l.Home, lookup: l.Lookup, approved: l.approved, disabled: l.disabled}
	r.server.Origin = Origin{Kind: src.kind, Path: src.path, Line: row.Line}
	r.server.Provider = src.provider
	dir := ""
	if src.kind != User || row.Local {
		dir = src.dir
	}
	var notes []dialect.Note
	row.Value, notes = src.shape.Carry(row, dir)
	r.read(row)
	for _, n := range notes {
		r.warn(n.Line, "%s", n.Text)
	}
	return r.server, r.warnings
}

// add gives the row its place. A row that is refused takes nobody's, and one that a project brings and nobody approved only
// that of another such row: a project may not take a person's own server away by bringing one of the same name.
func (l *loader) add(s Server) {
	place := standing{s.ID, s.weak()}
	i, taken := l.first[place]
	if s.Phase == drawbridge.Refused || !taken {
		if s.Phase != drawbridge.Refused {
			l.first[place] = len(l.set.Servers)
		}
		l.set.Servers = append(l.set.Servers, s)
		return
	}
	l.set.Shadowed = append(l.set.Shadowed, s)
	if first := l.set.Servers[i]; first.Origin.Path == s.Origin.Path {
		l.set.Warnings = append(l.set.Warnings, Warning{s.Origin, s.ID,
			fmt.Sprintf("Server %q: the file has it twice; the one on line %d counts", s.ID, first.Origin.Line)})
	}
}

// A standing is what a row that is not refused may take: a name, among those in force or among those that are weak.
type standing struct {
	id   drawbridge.ServerID
	weak bool
}

// weak says that a project brought the row and that it is not in force: one that is off may never have been approved.
func (s *Server) weak() bool { return s.Origin.Kind == Project && s.Phase != drawbridge.Idle }

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
