package confine

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// pathGrants are the paths that a program may use: each is a file, or a directory with its content. system and read are
// readable, write is writable. System paths may be missing, but paths that the row names must exist.
type pathGrants struct {
	system, read, write []string
}

// grantsOf returns the paths that a confined program may use. program is the program's path and search is the value of
// its PATH.
func (c Profile) grantsOf(program, search string) pathGrants {
	g := pathGrants{system: systemPaths(), read: slices.Clone(c.Read), write: append(slices.Clone(c.Write), c.Home)}
	g.system = append(g.system, program)
	g.system = append(g.system, c.toolchainPaths(filepath.Dir(program))...)
	if real, err := filepath.EvalSymlinks(program); err == nil && real != program {
		g.system = append(g.system, real)
		g.system = append(g.system, c.toolchainPaths(filepath.Dir(real))...)
	}
	for _, dir := range filepath.SplitList(search) {
		g.system = append(g.system, c.toolchainPaths(dir)...)
		if real, err := filepath.EvalSymlinks(dir); err == nil && real != dir {
			g.system = append(g.system, c.toolchainPaths(real)...)
		}
	}
	if !c.startsInUserHome() {
		g.write = append(g.write, c.Dir)
	}
	slices.Sort(g.system)
	g.system = slices.Compact(g.system)
	return g
}

// startsInUserHome reports whether the program would start in the user's home directory or in a parent directory of it.
// The program must not write there.
func (c Profile) startsInUserHome() bool { return c.Dir == "" || c.containsUserHome(c.Dir) }

func (c Profile) containsUserHome(dir string) bool {
	home := c.UserHome
	if real, err := filepath.EvalSymlinks(home); err == nil && real != home {
		if real2, err := filepath.EvalSymlinks(dir); err == nil && containsPath(real2, real) {
			return true
		}
	}
	return containsPath(dir, home)
}

// containsPath reports whether dir is other or contains it.
func containsPath(dir, other string) bool {
	rel, err := filepath.Rel(dir, other)
	return err == nil && filepath.IsLocal(rel)
}

// toolchainPaths returns dir, a directory of programs, and the paths that these programs need. Examples are the
// libraries of a version manager's node and the settings of a Python virtual environment. It returns nil for a
// directory that contains the user's home directory.
func (c Profile) toolchainPaths(dir string) []string {
	if !filepath.IsAbs(dir) || c.containsUserHome(dir) {
		return nil
	}
	all := []string{dir}
	if base := filepath.Base(dir); base != "bin" && base != "sbin" && base != "shims" {
		return all
	}
	for _, name := range []string{"lib", "lib64", "libexec", "versions", "version", "pyvenv.cfg"} {
		all = append(all, filepath.Join(filepath.Dir(dir), name))
	}
	return all
}

// systemPaths returns the paths that every program may read: files of the system and information of the kernel. They do
// not include files of users.
func systemPaths() []string {
	return []string{
		"/bin", "/sbin", "/usr", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/opt", "/proc", "/sys", "/nix/store",
		"/gnu/store", "/run/current-system", "/home/linuxbrew/.linuxbrew",
		"/run/systemd/resolve", "/run/resolvconf", "/run/NetworkManager/resolv.conf", "/var/lib/ca-certificates",
	}
}

// devicePaths returns the devices that a program may write to. These devices store nothing.
func devicePaths() []string {
	return []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"}
}

// splitDirsAndFiles separates paths into directories and files. It omits paths that do not exist.
func splitDirsAndFiles(paths []string) (dirs, files []string) {
	for _, p := range paths {
		switch info, err := os.Stat(p); {
		case err != nil:
		case info.IsDir():
			dirs = append(dirs, p)
		default:
			files = append(files, p)
		}
	}
	return dirs, files
}

// searchPath returns the PATH variable of an environment.
func searchPath(env []string) string { return strings.TrimSpace(lookupVariable(env, "PATH")) }
