package confine

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// pathGrants are the paths that a program may use, each as a directory with all that is in it or as one file. The
// system's own may be missing, those that the row names must not.
type pathGrants struct {
	system, read, write []string
}

// grantsOf finds them out for a program with that PATH.
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

// startsInUserHome says whether the program would start in the person's home, or in what holds it, which are not its
// to write.
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

// containsPath says whether a directory is another one, or holds it.
func containsPath(dir, other string) bool {
	rel, err := filepath.Rel(dir, other)
	return err == nil && filepath.IsLocal(rel)
}

// toolchainPaths gives a directory of programs with what programs of it need beside it: the libraries of a version
// manager's node, the settings of a virtual environment's python. What holds the person's home is none.
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

// systemPaths are what every program of the machine may read: its own files, and what the kernel says. Nobody's own
// files are among them.
func systemPaths() []string {
	return []string{
		"/bin", "/sbin", "/usr", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/opt", "/proc", "/sys", "/nix/store",
		"/gnu/store", "/run/current-system", "/home/linuxbrew/.linuxbrew",
		"/run/systemd/resolve", "/run/resolvconf", "/run/NetworkManager/resolv.conf", "/var/lib/ca-certificates",
	}
}

// devicePaths are what programs may write to that keeps nothing.
func devicePaths() []string {
	return []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"}
}

// splitDirsAndFiles takes paths apart into directories and files, those that are there.
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

// searchPath is the PATH of an environment.
func searchPath(env []string) string { return strings.TrimSpace(lookupVariable(env, "PATH")) }
