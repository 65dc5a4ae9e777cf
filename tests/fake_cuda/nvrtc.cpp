// NVRTC for the emulation: passes the kernels to the CPU's own compiler. The cubin it returns is
// the path of the resulting library.
//
// EMULATED_FOLDER   folder for the libraries
// EMULATED_HEADER   folder of the header that replaces kernels/instructions.cuh, and of its precompiled form
// EMULATED_COMPILER compiler of the kernels and of that header, with the flags of both
// EMULATED_BROKEN   hook of the kernels (BREAK) that is active; read when they run

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <regex>
#include <sstream>
#include <string>
#include <unistd.h>

struct Program {
    std::string source, log, output;
    std::map<std::string, std::string> headers;
};

// All includes of a source text, so that a change elsewhere does not recompile it. `macros` names
// the header of the cost.
static void collect(const Program &program, const std::string &text, const std::string &macros, std::map<std::string, std::string> &found) {
    static const std::regex include("#include (?:\"([^\"]+)\"|COST_HEADER)"), cost("-DCOST_HEADER=\"([^\"]+)\"");
    for (auto at = std::sregex_iterator(text.begin(), text.end(), include); at != std::sregex_iterator(); ++at) {
        std::string name = (*at)[1];
        std::smatch of_cost;
        if (name.empty() && std::regex_search(macros, of_cost, cost)) name = of_cost[1];
        auto header = program.headers.find(name);
        if (header != program.headers.end() && found.insert(*header).second) collect(program, header->second, macros, found);
    }
}

extern "C" {
int nvrtcVersion(int *major, int *minor) { *major = 13; *minor = 0; return 0; }
int nvrtcGetNumSupportedArchs(int *count) { *count = 1; return 0; }
int nvrtcGetSupportedArchs(int *archs) { archs[0] = 90; return 0; }
int nvrtcCreateProgram(Program **out, const char *source, const char *, int count, const char *const *texts,
                       const char *const *names) {
    *out = new Program;
    (*out)->source = source;
    for (int i = 0; i < count; i++) (*out)->headers[names[i]] = texts[i];
    return 0;
}
int nvrtcDestroyProgram(Program **program) { delete *program; *program = nullptr; return 0; }

int nvrtcCompileProgram(Program *program, int count, const char *const *options) {
    std::string all = program->source, macros;
    for (int i = 0; i < count; i++)
        if (!strncmp(options[i], "-D", 2)) macros += std::string(" '") + options[i] + "'";
    std::ifstream replaced(std::string(getenv("EMULATED_HEADER")) + "/instructions.cuh");
    std::stringstream replacement;
    replacement << replaced.rdbuf();
    program->headers["instructions.cuh"] = replacement.str();
    std::map<std::string, std::string> included;
    collect(*program, program->source, macros, included);
    for (auto &[name, text] : included) all += text;
    all += macros;

    namespace fs = std::filesystem;
    char number[32];
    snprintf(number, sizeof number, "%016zx", std::hash<std::string>()(all));
    fs::path folder = fs::path(getenv("EMULATED_FOLDER")) / number, library = folder / "kernels.so";
    program->output = library.string();
    if (fs::exists(library)) return 0;
    // Other processes may compile the same.
    fs::path own = folder.string() + "." + std::to_string(getpid()) + "." + std::to_string((size_t)program);
    fs::create_directories(own);
    for (auto &[name, text] : program->headers)
        if (name != "instructions.cuh") std::ofstream(own / name) << text;
    std::ofstream source(own / "kernels.cpp");
    source << "#include \"instructions.cuh\"\n" << program->source;
    std::regex kernel("extern \"C\" __global__ void (?:__launch_bounds__\\([^)]*\\)\\s*)?(\\w+)\\(");
    auto &text = program->source;
    for (auto found = std::sregex_iterator(text.begin(), text.end(), kernel); found != std::sregex_iterator(); ++found) {
        std::string name = (*found)[1];
        source << "extern \"C\" void emulated_" << name
               << "(void **arguments, const u32 *grid, const u32 *block, u32 shared, int together) {\n"
               << "    emulated::launch([](void **arguments) { emulated::call(&" << name
               << ", arguments); }, arguments, grid, block, shared, together);\n}\n";
    }
    source.close();
    std::string errors = (own / "errors").string();
    std::string command = getenv("EMULATED_COMPILER") + macros + " -shared -I" + getenv("EMULATED_HEADER") + " -o " +
                          (own / "kernels.so").string() + " " + (own / "kernels.cpp").string() + " 2> " + errors;
    int status = system(command.c_str());
    std::stringstream log;
    log << std::ifstream(errors).rdbuf();
    program->log = log.str();
    if (status == 0) {
        std::error_code taken;
        fs::rename(own, folder, taken);
        if (taken) fs::remove_all(own);
    }
    return status == 0 ? 0 : 6;
}
int nvrtcGetProgramLogSize(Program *program, size_t *size) { *size = program->log.size() + 1; return 0; }
int nvrtcGetProgramLog(Program *program, char *log) { strcpy(log, program->log.c_str()); return 0; }
int nvrtcGetCUBINSize(Program *program, size_t *size) { *size = program->output.size() + 1; return 0; }
int nvrtcGetCUBIN(Program *program, char *cubin) { strcpy(cubin, program->output.c_str()); return 0; }
int nvrtcGetPTXSize(Program *, size_t *) { return 7; }
int nvrtcGetPTX(Program *, char *) { return 7; }
const char *nvrtcGetErrorString(int) { return "the processor's compiler refused the kernels"; }
}
