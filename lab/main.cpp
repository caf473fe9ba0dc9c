#include <lab/lab.h>

int main(int argc, char **argv) {
    return halation::lab::run(argc, argv);
}
