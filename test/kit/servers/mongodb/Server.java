import de.bwaldvogel.mongo.MongoServer;
import de.bwaldvogel.mongo.MongoVersion;
import de.bwaldvogel.mongo.backend.AbstractMongoBackend;
import de.bwaldvogel.mongo.backend.Missing;
import de.bwaldvogel.mongo.backend.h2.H2Backend;
import de.bwaldvogel.mongo.backend.memory.MemoryBackend;
import java.io.InputStream;
import java.io.OutputStream;
import java.lang.invoke.MethodHandles;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.List;
import org.objectweb.asm.ClassReader;
import org.objectweb.asm.ClassVisitor;
import org.objectweb.asm.ClassWriter;
import org.objectweb.asm.MethodVisitor;
import org.objectweb.asm.Opcodes;

/**
 * A MongoDB-protocol server for tests. Arguments: port, and optionally a file to keep the data in. Its first line is its
 * URL. It ends when its standard input does, so it does not outlive the tests that started it.
 */
public class Server {
  public static void main(String[] args) throws Exception {
    orderStringsByBytes();
    AbstractMongoBackend backend = args.length > 1 ? new H2Backend(args[1]) : new MemoryBackend();
    MongoServer server = new MongoServer(backend.version(new Advertised()));
    Runtime.getRuntime().addShutdownHook(new Thread(server::shutdownNow));
    server.bind("127.0.0.1", Integer.parseInt(args[0]));
    System.out.println("mongodb://127.0.0.1:" + server.getLocalAddress().getPort());
    System.in.transferTo(OutputStream.nullOutputStream());
    System.exit(0);
  }

  /** The library reports 4.0 (wire version 8), which current drivers reject, although it supports the commands that they send. */
  private static final class Advertised implements MongoVersion {
    @Override public List<Integer> getVersionArray() { return List.of(7, 0, 0); }
    @Override public int getWireVersion() { return 21; }
  }

  /** Orders strings by bytes, as MongoDB does. The library orders by UTF-16 units, which differs beyond U+FFFF. */
  public static int compareBytes(String left, String right) {
    return Arrays.compareUnsigned(left.getBytes(StandardCharsets.UTF_8), right.getBytes(StandardCharsets.UTF_8));
  }

  /** Patches the library's comparator to call `compareBytes`; the library has no setting for this. */
  private static void orderStringsByBytes() throws Exception {
    ClassWriter patched = new ClassWriter(0);
    try (InputStream original = Missing.class.getResourceAsStream("ValueComparator.class")) {
      new ClassReader(original).accept(new Patch(patched), 0);
    }
    MethodHandles.privateLookupIn(Missing.class, MethodHandles.lookup()).defineClass(patched.toByteArray());
  }

  private static final class Patch extends ClassVisitor {
    Patch(ClassWriter target) { super(Opcodes.ASM9, target); }

    @Override public MethodVisitor visitMethod(int access, String name, String type, String generic, String[] thrown) {
      return new MethodVisitor(Opcodes.ASM9, super.visitMethod(access, name, type, generic, thrown)) {
        @Override public void visitMethodInsn(int code, String owner, String method, String type, boolean isInterface) {
          boolean compares = owner.equals("java/lang/String") && method.equals("compareTo") && type.equals("(Ljava/lang/String;)I");
          if (!compares) super.visitMethodInsn(code, owner, method, type, isInterface);
          else super.visitMethodInsn(Opcodes.INVOKESTATIC, "Server", "compareBytes", "(Ljava/lang/String;Ljava/lang/String;)I", false);
        }
      };
    }
  }
}
